package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Prefix begins the name of a model that names its own fault.
const Prefix = "sim-"

// Kind is one way to answer or to fail.
type Kind string

const (
	OK         Kind = "ok"
	Tools      Kind = "tools"
	JSON       Kind = "json"
	Prose      Kind = "prose"
	Empty      Kind = "empty"
	SlowFirst  Kind = "slow-first"
	NoDone     Kind = "no-done"
	Status     Kind = "status"
	WrongJSON  Kind = "wrong-json"
	HTML       Kind = "html"
	Malformed  Kind = "malformed"
	Down       Kind = "down"
	Refuse     Kind = "refuse"
	Reset      Kind = "reset"
	EOF        Kind = "eof"
	Hang       Kind = "hang"
	StallAfter Kind = "stall-after"
	CutAfter   Kind = "cut-after"
	ResetAfter Kind = "reset-after"
	EndAfter   Kind = "end-after"
	ErrorAfter Kind = "error-after"
)

// Bounds of what a name may ask for.
const (
	maxTokens     = 100_000
	defaultTokens = 12
)

// Fault is a parsed model name: how to answer.
type Fault struct {
	Kind   Kind
	Code   int           // Status: the HTTP status
	Wait   time.Duration // Status: Retry-After; SlowFirst: the delay; Down: how long
	After  int           // the *-after kinds and Malformed: tokens sent before it breaks
	First  int           // only the first calls of this name break, then it answers; 0 is all
	Tokens int           // length of the answer
	Gap    time.Duration // between two tokens
}

// argument is what may follow a fault's name.
type argument int

const (
	noArgument argument = iota
	statusArgument
	durationArgument
	countArgument
)

// kinds is the grammar, in the order in which Help shows it.
var kinds = []struct {
	kind  Kind
	arg   argument
	usage string
	help  string
}{
	{OK, noArgument, "ok", "a proper answer"},
	{Tools, noArgument, "tools", "a call of the first tool that was offered"},
	{JSON, noArgument, "json", "JSON that fits the schema that was asked for"},
	{Prose, noArgument, "prose", "plain text although a schema was asked for"},
	{Empty, noArgument, "empty", "a proper end and no text"},
	{SlowFirst, durationArgument, "slow-first-<time>", "headers at once, the first token late (20s)"},
	{NoDone, noArgument, "no-done", "a stream without the protocol's terminator"},
	{Status, statusArgument, "status-<code>[-retry-<time>]", "an error of the protocol; status- may be left out"},
	{WrongJSON, noArgument, "wrong-json", "status 200 and JSON of another shape"},
	{HTML, noArgument, "html", "status 200 and a login page"},
	{Malformed, noArgument, "malformed", "status 200 and broken JSON, in a stream after two tokens"},
	{Down, durationArgument, "down-<time>", "the port closes for so long (5s)"},
	{Refuse, durationArgument, "refuse-<time>", "the same as down"},
	{Reset, noArgument, "reset", "RST before the first byte"},
	{EOF, noArgument, "eof", "FIN before the first byte"},
	{Hang, noArgument, "hang", "no answer, ever"},
	{StallAfter, countArgument, "stall-after-<n>", "silence after n tokens (4)"},
	{CutAfter, countArgument, "cut-after-<n>", "FIN after n tokens, the body not ended (4)"},
	{ResetAfter, countArgument, "reset-after-<n>", "RST after n tokens (4)"},
	{EndAfter, countArgument, "end-after-<n>", "the body ends properly after n tokens, without a finish reason (4)"},
	{ErrorAfter, countArgument, "error-after-<n>", "an error of the protocol after n tokens (4)"},
}

// Help lists what a model name can say, a line each.
func Help() string {
	var b strings.Builder
	b.WriteString("sim-[once-|first-<n>-]<fault>[-t<tokens>][-g<gap>], for example sim-ok-t60-g20ms, where <fault> is\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-30s %s\n", k.usage, k.help)
	}
	b.WriteString("A <time> is a number of seconds or has a unit (500ms, 20s).\n")
	return b.String()
}

// ParseModel reads the fault out of a model's name. A name without Prefix is a
// proper answer.
func ParseModel(model string) (Fault, error) {
	if !strings.HasPrefix(model, Prefix) {
		return ParseFault(string(OK))
	}
	return ParseFault(model)
}

// ParseFault reads a fault with or without Prefix.
func ParseFault(name string) (Fault, error) {
	fields := strings.Split(strings.TrimPrefix(name, Prefix), "-")
	fault := Fault{Tokens: defaultTokens}
	fields, err := fault.takeModifiers(fields)
	if err == nil {
		fields, err = fault.takeFirst(fields)
	}
	if err == nil {
		err = fault.takeKind(fields)
	}
	if err != nil {
		return Fault{}, fmt.Errorf("fault %.80q: %w", name, err)
	}
	return fault, nil
}

// takeModifiers reads -t<tokens> and -g<gap> off the end.
func (f *Fault) takeModifiers(fields []string) (rest []string, err error) {
	for len(fields) > 1 {
		last := fields[len(fields)-1]
		switch {
		case len(last) > 1 && last[0] == 't' && isDigit(last[1]):
			f.Tokens, err = count(last[1:])
		case len(last) > 1 && last[0] == 'g' && isDigit(last[1]):
			f.Gap, err = duration(last[1:])
		default:
			return fields, nil
		}
		if err != nil {
			return nil, err
		}
		fields = fields[:len(fields)-1]
	}
	return fields, nil
}

// takeFirst reads once- or first-<n>- off the beginning.
func (f *Fault) takeFirst(fields []string) (rest []string, err error) {
	switch {
	case fields[0] == "once":
		f.First = 1
		return fields[1:], nil
	case fields[0] == "first" && len(fields) > 1:
		f.First, err = count(fields[1])
		return fields[2:], err
	}
	return fields, nil
}

func (f *Fault) takeKind(fields []string) error {
	if len(fields) > 0 && fields[0] != "" && isDigit(fields[0][0]) {
		fields = append([]string{string(Status)}, fields...)
	}
	// The longest name that fits, as in reset-after-2.
	for n := min(2, len(fields)); n > 0; n-- {
		name := Kind(strings.Join(fields[:n], "-"))
		for _, k := range kinds {
			if k.kind == name {
				f.Kind = name
				return f.takeArgument(k.arg, strings.Join(fields[n:], "-"))
			}
		}
	}
	return fmt.Errorf("there is no such fault")
}

func (f *Fault) takeArgument(arg argument, text string) (err error) {
	switch {
	case arg == statusArgument:
		return f.takeStatus(text)
	case arg == noArgument && text != "":
		return fmt.Errorf("%s takes no argument", f.Kind)
	case arg == durationArgument && text != "":
		f.Wait, err = duration(text)
	case arg == durationArgument && f.Kind == SlowFirst:
		f.Wait = 20 * time.Second
	case arg == durationArgument:
		f.Wait = 5 * time.Second
	case arg == countArgument && text != "":
		f.After, err = count(text)
	case arg == countArgument:
		f.After = 4
	}
	switch f.Kind {
	case Refuse:
		f.Kind = Down
	case Malformed:
		f.After = 2
	}
	return err
}

func (f *Fault) takeStatus(text string) (err error) {
	code, retry, wait := strings.Cut(text, "-retry-")
	if f.Code, err = strconv.Atoi(code); err != nil || f.Code < 300 || f.Code > 599 {
		return fmt.Errorf("a status is a number from 300 to 599")
	}
	if wait {
		f.Wait, err = duration(retry)
	}
	return err
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxTokens {
		return 0, fmt.Errorf("a count is a number from 0 to %d", maxTokens)
	}
	return n, nil
}

// duration takes seconds, or a number with a unit.
func duration(text string) (time.Duration, error) {
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 24*time.Hour {
		return 0, fmt.Errorf("a time is a number of seconds or has a unit (500ms, 20s), up to 24h")
	}
	return d, nil
}
