package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Settings say when a breaker opens and how it closes again. A zero field
// stands for its default, but for Ramp, where zero is off.
type Settings struct {
	Threshold    int           // failures within Window, over the whole fleet, that open it: 1 to 1000, default 5
	Window       time.Duration // how long a failure counts: 1 s to 1 h, default 30 s
	CoolDown     time.Duration // from opening to the first probe: 100 ms to 24 h, default 10 s
	MaxCoolDown  time.Duration // the longest that repeated failure makes it: CoolDown to 24 h, default 5 min
	ProbeTimeout time.Duration // the longest a probe may take: 100 ms to 10 min, default 30 s
	Ramp         time.Duration // after closing, 10 %, 25 %, 50 % and then all calls over this time: 0 (off) to 1 h
}

// longestWait bounds what a record or a Retry-After can make a fleet wait.
const longestWait = 24 * time.Hour

// Validate names every field that cannot apply and what it must be.
func (s Settings) Validate() error {
	s = s.withDefaults()
	var errs []error
	if s.Threshold < 1 || s.Threshold > 1000 {
		errs = append(errs, fmt.Errorf("threshold: must be 1 to 1000, not %d", s.Threshold))
	}
	for _, f := range []struct {
		name               string
		value, least, most time.Duration
	}{
		{"window", s.Window, time.Second, time.Hour},
		{"cool_down", s.CoolDown, 100 * time.Millisecond, longestWait},
		{"max_cool_down", s.MaxCoolDown, s.CoolDown, longestWait},
		{"probe_timeout", s.ProbeTimeout, 100 * time.Millisecond, 10 * time.Minute},
		{"ramp", s.Ramp, 0, time.Hour},
	} {
		if f.value < f.least || f.value > f.most {
			errs = append(errs, fmt.Errorf("%s: must be %s to %s, not %s", f.name, f.least, f.most, f.value))
		}
	}
	return errors.Join(errs...)
}

func (s Settings) withDefaults() Settings {
	s.Threshold = cmp.Or(s.Threshold, 5)
	s.Window = cmp.Or(s.Window, 30*time.Second)
	s.CoolDown = cmp.Or(s.CoolDown, 10*time.Second)
	s.MaxCoolDown = cmp.Or(s.MaxCoolDown, max(5*time.Minute, s.CoolDown))
	s.ProbeTimeout = cmp.Or(s.ProbeTimeout, 30*time.Second)
	return s
}

// lease is how long the right to probe is held at most. It outlasts the probe,
// since the server counts it from a little earlier than the owner does, and is
// in whole seconds, since the server cuts the rest off.
func (s Settings) lease() time.Duration {
	return (s.ProbeTimeout + 2*time.Second - 1).Truncate(time.Second)
}

// next is the cool-down that follows one of length d, which failed.
func (s Settings) next(d time.Duration) time.Duration {
	return max(s.CoolDown, min(2*d, s.MaxCoolDown))
}
