package breaker

import (
	"errors"
	"fmt"
	"time"
)

// ErrOpen matches every refusal of Acquire.
var ErrOpen = errors.New("circuit breaker refuses the call")

// OpenError is a refusal of one call.
type OpenError struct {
	Key        string        // <provider>.<model>, both escaped
	State      State         // Closed if a ramp holds the call back
	Why        string        // class of the failure that opened it, or what the provider asked for
	RetryAfter time.Duration // when a call may be admitted again; at least 1 ms
}

// Error is fit to be logged.
func (e *OpenError) Error() string {
	return fmt.Sprintf("breaker %s is %s (%s), retry in %s", e.Key, e.State, e.Why, e.RetryAfter.Round(time.Millisecond))
}

// Is matches ErrOpen.
func (e *OpenError) Is(target error) bool { return target == ErrOpen }
