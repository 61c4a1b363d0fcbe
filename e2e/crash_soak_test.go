package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

var soakFor = flag.Duration("soak", 3*time.Second, "how long TestSoak puts faults through a fleet")

const (
	soakCallers = 16
	soakRound   = 750 * time.Millisecond // of load, after which all is counted
	wholeAnswer = 12                     // words, as the simulator makes them
)

// soakFaults are what may become of a provider at any time. Those that cool a
// target for minutes are left out.
var soakFaults = []string{
	"429", "429-retry-100ms", "500", "503", "529", "400", "401", "404", "reset", "eof", "hang", "slow-first-1", "cut-after-4", "reset-after-4",
	"stall-after-4", "end-after-4", "error-after-4", "malformed", "no-done", "wrong-json", "html", "empty", "down-100ms", "ok-g10ms",
}

// soak is a fleet over three providers, each with a server of its own.
type soak struct {
	*fleet
	book     *ledger
	servers  []*sim.Server
	adapters []closer

	mu    sync.Mutex
	ends  map[string]int // by terminal reason, or by who answered
	asked int
}

func TestSoakFaults(t *testing.T) {
	for _, name := range soakFaults {
		_, err := sim.ParseFault(name)
		require.NoError(t, err)
	}
}

func startSoak(t *testing.T) *soak {
	s := &soak{ends: make(map[string]int)}
	for range protocols {
		s.servers = append(s.servers, simtest.Start(t))
	}
	p := inBubble(t)
	p.providers = make([]*fake.Provider, len(protocols)) // their places
	p.breaker = breaker.Settings{Threshold: 10, Window: time.Second, CoolDown: 100 * time.Millisecond, MaxCoolDown: 400 * time.Millisecond, ProbeTimeout: time.Second}
	p.feature = func(f *chain.Feature) {
		f.OnInterrupt = chain.InterruptRestart
		for i := range f.Targets {
			c := adapter(t, protocols[i], s.servers[i])
			s.adapters = append(s.adapters, c)
			f.Targets[i].Completer, f.Targets[i].Attempts, f.Targets[i].Timeout = c, 2, 300*time.Millisecond
			f.Targets[i].Limits = provider.Timeouts{FirstToken: 150 * time.Millisecond, Idle: 150 * time.Millisecond}
		}
	}
	s.fleet = startFleet(t, 3, p)
	s.book = newLedger(t, s.caller)
	return s
}

func TestSoak(t *testing.T) {
	s := startSoak(t)
	defer s.halt()
	began := time.Now()
	s.round(t) // to fill pools and buffers
	s.round(t)
	before := s.weigh(t, 0)
	for time.Since(began) < *soakFor {
		s.round(t)
	}
	after := s.weigh(t, before.goroutines)
	t.Logf("%d requests: %v; after warm-up %s, at the end %s", s.asked, s.ends, before, after)
	require.Less(t, after.live, before.live+4<<20, "live heap")
	require.Less(t, after.resident, before.resident*11/10+64<<20, "resident memory, of which the race detector takes more and more")
	require.Positive(t, s.ends["a"])
	require.Positive(t, s.ends["b"]+s.ends["c"], "answers by failover")
	s.recover(t)
	s.settle(t, s.book)
}

// round asks from many callers while the providers fail at random, and then
// counts what came.
func (s *soak) round(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soakRound)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.fail(ctx) })
	for range soakCallers {
		wg.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				wait, err := s.once(t.Context())
				if err != nil {
					t.Error(err)
				}
				pass(min(wait, 50*time.Millisecond))
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	for _, w := range s.workers {
		require.NoError(t, w.conn.Flush())
	}
	s.book.check(t)
}

// fail changes the weather of one provider after another.
func (s *soak) fail(ctx context.Context) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		server := s.servers[rand.N(len(s.servers))]
		server.Clear()
		if rand.N(2) > 0 {
			_ = server.Control(sim.Rule{Fault: soakFaults[rand.N(len(soakFaults))], Times: 1 + rand.N(20)}) // TestSoakFaults shows that it parses
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for _, server := range s.servers {
		server.Clear()
	}
}

var (
	errLate = errors.New("a request ended more than a second after its deadline")
	errCut  = errors.New("a truncated answer was called success")
)

// once asks for anything in any way, and now and then takes the question back.
// wait is how long the worker asks to be left alone.
func (s *soak) once(ctx context.Context) (wait time.Duration, err error) {
	q := question{stream: rand.N(2) == 0, timeout: 300*time.Millisecond + rand.N(2*time.Second)}
	if rand.N(4) == 0 {
		q.class = llm.ClassBackground
	}
	id, err := s.book.put(q)
	if err != nil {
		return 0, err
	}
	if rand.N(20) == 0 {
		if err := s.caller.Publish(subjects.Cancel(id), nil); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout+5*time.Second)
	defer cancel()
	got, err := s.book.await(ctx, id)
	if err != nil {
		return 0, err
	}
	how := got.Provider
	switch {
	case got.took > q.timeout+time.Second: // a machine under load is late by less
		return 0, errLate
	case got.Error != nil:
		how, wait = string(got.Error.Code), got.Error.RetryAfter()
	case len(strings.Fields(got.Content)) != wholeAnswer:
		return 0, errCut
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[how]++
	s.asked++
	return wait, nil
}

// weight is what the process uses: bytes that the kernel counts, bytes of the
// heap that are in use, and goroutines.
type weight struct {
	resident, live int64
	goroutines     int
}

func (w weight) String() string {
	return fmt.Sprintf("RSS %.1f MiB, live heap %.1f MiB, %d goroutines", float64(w.resident)/(1<<20), float64(w.live)/(1<<20), w.goroutines)
}

// weigh waits until nothing is under way, and the goroutines are no more than
// some number and a few; 0 is any number.
func (s *soak) weigh(t *testing.T, most int) (w weight) {
	t.Helper()
	for _, server := range s.servers {
		until(t, "every call has ended", func() bool { return server.Stats().InFlight == 0 })
	}
	for _, c := range s.adapters {
		c.Close()
	}
	for _, server := range s.servers {
		until(t, "every connection is closed", func() bool { return server.Stats().Open == 0 })
	}
	until(t, "goroutines are back at their number", func() bool {
		w.goroutines = goroutines()
		return most == 0 || w.goroutines <= most+10 // the NATS server has some that come and go
	})
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.live, w.resident = int64(m.HeapAlloc), resident(t)
	return w
}

// resting is how the stack of a goroutine begins that a worker keeps for its next
// request.
var resting = regexp.MustCompile(`\n\ngoroutine \d+ \[[^\n]*\]:\n[^\n]*/bus\.\(\*crew\)\.work\(`)

// goroutines counts by stacks, since runtime.NumGoroutine is off at times. It
// leaves out those that rest: there may be as many as requests at once.
func goroutines() int {
	buf := make([]byte, 4<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	return strings.Count(stacks, "\n\ngoroutine ") + 1 - len(resting.FindAllStringIndex(stacks, -1))
}

// resident is the memory that the process holds, as the kernel counts it, or as
// the runtime does where the kernel does not tell.
func resident(t *testing.T) int64 {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if errors.Is(err, fs.ErrNotExist) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys - m.HeapReleased)
	}
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// recover demands that the workers agree about every breaker, and that each
// closes once its provider is well and asked.
func (s *soak) recover(t *testing.T) {
	t.Helper()
	until(t, "the workers agree", func() bool {
		first := opinions(s.workers[0])
		for _, w := range s.workers[1:] {
			if !maps.Equal(first, opinions(w)) {
				return false
			}
		}
		return true
	})
	for i, server := range s.servers {
		name := string(rune('a' + i))
		until(t, name+" serves again", func() bool {
			got, err := s.book.ask(t.Context(), question{timeout: 5 * time.Second})
			require.NoError(t, err)
			return got.Provider == name
		})
		for _, w := range s.workers {
			until(t, name+" is closed at all", func() bool { return w.state(subjects.BreakerKey(name, "m")) == breaker.Closed })
			require.False(t, w.breakers.Degraded())
		}
		require.NoError(t, server.Control(sim.Rule{Fault: "503"})) // so that the next is asked
	}
}

// opinion is what a worker thinks of one breaker.
type opinion struct {
	state      breaker.State
	generation uint64
}

func opinions(w *worker) map[string]opinion {
	all := make(map[string]opinion)
	for _, s := range w.breakers.Snapshot() {
		all[s.Key] = opinion{s.State, s.Generation}
	}
	return all
}
