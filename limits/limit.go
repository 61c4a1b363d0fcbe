package limits

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Kind is what a limit counts.
type Kind string

const (
	Requests   Kind = "requests"
	Tokens     Kind = "tokens" // of prompts and answers together
	USD        Kind = "usd"    // counted in nano-dollars
	Concurrent Kind = "concurrent"
)

// NanoUSD is one US dollar as it is counted. The cheapest token costs some
// tens of nano-dollars.
const NanoUSD = 1e9

// Window is the length of the spans of time over which a limit holds. There is
// none for Concurrent.
type Window string

const (
	Minute Window = "minute"
	Hour   Window = "hour"
	Day    Window = "day"
)

// Windows lists them, the shortest first.
func Windows() []Window { return []Window{Minute, Hour, Day} }

// Length of the window; 0 for none.
func (w Window) Length() time.Duration {
	switch w {
	case Minute:
		return time.Minute
	case Hour:
		return time.Hour
	case Day:
		return 24 * time.Hour
	}
	return 0
}

// Limit is the most of one kind within one window.
type Limit struct {
	Kind   Kind
	Window Window
	Amount int64 // above 0; of USD in nano-dollars
}

// Name is the setting's: tokens_per_minute, concurrent.
func (l Limit) Name() string {
	if l.Window == "" {
		return string(l.Kind)
	}
	return string(l.Kind) + "_per_" + string(l.Window)
}

// String is the limit for people: "600 requests a minute".
func (l Limit) String() string {
	switch l.Kind {
	case USD:
		return Dollars(l.Amount) + an(l.Window)
	case Concurrent:
		return strconv.FormatInt(l.Amount, 10) + " requests at once"
	}
	return strconv.FormatInt(l.Amount, 10) + " " + string(l.Kind) + an(l.Window)
}

func an(w Window) string {
	if w == Hour {
		return " an hour"
	}
	return " a " + string(w)
}

// Dollars writes nano-dollars for people.
func Dollars(nano int64) string {
	usd := float64(nano) / NanoUSD
	if cents := usd * 100; cents != math.Trunc(cents) {
		return "$" + strconv.FormatFloat(usd, 'f', -1, 64)
	}
	if usd == math.Trunc(usd) {
		return fmt.Sprintf("$%.0f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
