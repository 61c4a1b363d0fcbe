package bus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/provider/fake"
)

// A worker that is full each time it comes back stays away while another has
// room, and comes back as soon as none has.
func TestARelapsedWorkerComesBackWhenItIsNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		slots int // of the other worker, of which two or some more are taken
		want  bus.State
	}{
		"room elsewhere":    {256, bus.Away}, // far more than can come to it before this one has its own
		"no room elsewhere": {2, bus.Joined},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				spell := 1200 * time.Millisecond
				r := start(t, model{fake.New(fake.Step{Wait: spell, Pieces: []string{"a"}})}, slotsOf(1))
				again := func() { // what occupies it has ended, and it may have come back
					<-time.After(spell + 500*time.Millisecond)
					synctest.Wait()
				}
				for range 2 {
					r.occupy(t, 1)
					again()
					require.Equal(t, bus.Joined, r.worker.State(), "nobody else is there")
				}
				require.EqualValues(t, 2, r.worker.Stats().Left)
				other, stop := startWorker(t, natstest.Connect(t, r.srv), model{fake.New(fake.Hangs())}, slotsOf(tc.slots),
					func(c *bus.Config) { c.FullFor, c.Grace = time.Hour, time.Millisecond })
				for other.Stats().InFlight < 2 || r.worker.Stats().InFlight < 1 { // each until both have theirs
					r.occupy(t, 1)
				}
				again()
				require.Equal(t, tc.want, r.worker.State())
				require.NoError(t, stop())
			})
		})
	}
}
