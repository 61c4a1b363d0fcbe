package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads how long the provider asks to be left alone: retry-after-ms,
// x-ms-retry-after-ms, or Retry-After in seconds (fractions allowed) or as an
// HTTP date (RFC 9110, 10.2.3). What is negative or no number is ignored; a date
// that has passed is 0. A wait of any length is returned as it is.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if wait, ok := quantity(h.Get(name), time.Millisecond); ok {
			return wait, true
		}
	}
	value := h.Get("Retry-After")
	if wait, ok := quantity(value, time.Second); ok {
		return wait, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// quantity reads a number of units.
func quantity(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > float64(math.MaxInt64/int64(unit)) {
		return 0, false
	}
	return time.Duration(math.Round(n * float64(unit))), true
}

// shouldRetry reads x-should-retry; nil is no opinion.
func shouldRetry(h http.Header) *bool {
	switch strings.ToLower(strings.TrimSpace(h.Get("X-Should-Retry"))) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}
