package natstest

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// Bubble runs f in a synctest bubble, where time moves only while every
// goroutine waits. Servers and connections must be made with the t that f gets:
// their cleanup then runs inside the bubble.
//
// nats.go keeps timers in a package-wide sync.Pool, and a timer that one bubble
// made must not be used outside it. A sync.Pool forgets what it holds after two
// collections, so Bubble forces them on both sides. The server's stores share one
// clock goroutine per process, which waits on a channel from outside and would
// keep the bubble's time from moving if it lived inside, so Bubble holds it open
// outside. A test binary that has bubbles must not run tests in parallel.
//
// Time stands still once f and its cleanups are done, and a goroutine of nats.go
// that looks every 100 ms whether something has ended would never see it; so a
// second passes at the end.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	ats.Register()
	defer ats.Unregister()
	dropPools()
	defer dropPools()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) }) // the first is the last to run
		f(t)
	})
}

// Advance lets d pass in a bubble and then waits until nothing moves any more.
func Advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func dropPools() {
	runtime.GC()
	runtime.GC()
}
