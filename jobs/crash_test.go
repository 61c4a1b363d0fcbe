package jobs_test

import (
	"bytes"
	"context"
	"flag"
	"iter"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

var crashJobs = flag.Int("jobs", 1000, "how many jobs TestWorkersDieAtEachStep puts through a fleet")

// step is a point in the work on a job at which its worker dies.
type step string

const (
	beforeCall  step = "before the call"
	inCall      step = "in the call"
	afterCall   step = "after the call"
	afterResult step = "after the result"
	beforeAck   step = "before the ack"
)

var steps = []step{beforeCall, inCall, afterCall, afterResult, beforeAck}

// fleet is workers that die and are replaced.
type fleet struct {
	*rig
	t    *testing.T
	live sync.WaitGroup

	mu      sync.Mutex
	doomed  map[string]step // by job; taken off when it has happened
	calls   map[string]int  // to the provider
	excused map[string]int  // calls whose worker died before their answer was stored
	deaths  map[step]int
}

// mortal is a worker that can die as of kill -9: its connection breaks in the
// middle and nobody hears of it again.
type mortal struct {
	*fleet
	net.Conn
	gone   chan struct{}
	dead   bool            // under the fleet's lock, as is inCall
	inCall map[string]bool // called, and the answer not stored
}

// spawn starts one worker.
func (f *fleet) spawn() {
	m := &mortal{fleet: f, gone: make(chan struct{}), inCall: map[string]bool{}}
	nc, err := nats.Connect("", nats.InProcessServer(m), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(f.t, err)
	f.t.Cleanup(nc.Close)
	_, _, s := open(f.t, nc, f.options)
	run(f.t, nc, s, m, func(c *jobs.Config) { c.Slots = 8 })
}

// InProcessConn makes the worker's connection, which this type taps.
func (m *mortal) InProcessConn() (net.Conn, error) {
	conn, err := m.srv.InProcessConn()
	m.Conn = conn
	return m, err
}

// dies reports whether the job's worker is to die at this step.
func (m *mortal) dies(id string, at step) bool { return !m.dead && m.doomed[id] == at }

// die breaks the connection and has another worker take the place.
func (m *mortal) die(id string, at step) {
	delete(m.doomed, id)
	m.dead = true
	m.deaths[at]++
	for id := range m.inCall {
		m.excused[id]++
	}
	close(m.gone)
	_ = m.Conn.Close()
	m.live.Go(m.spawn)
}

// Write watches what the worker says to the server: its answers and
// acknowledgements pass here, many in one piece.
func (m *mortal) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := 0
	for line := range bytes.Lines(p) {
		at := next
		next += len(line)
		words := strings.Fields(string(line))
		switch {
		case m.dead:
			return 0, net.ErrClosed
		case bytes.HasPrefix(line, []byte("HPUB llm.results.")), bytes.HasPrefix(line, []byte("HPUB llm.dead.")):
			id := words[1][strings.LastIndex(words[1], ".")+1:] // HPUB subject reply length-of-headers length
			delete(m.inCall, id)
			if m.dies(id, afterResult) { // it is on its way, and its acknowledgement is never read
				length, err := strconv.Atoi(words[4])
				require.NoError(m.t, err)
				_, _ = m.Conn.Write(p[:next+length+2])
				m.die(id, afterResult)
			}
		case bytes.HasPrefix(line, []byte("PUB $JS.ACK.LLM_JOBS.")) && bytes.HasPrefix(p[next:], []byte("+ACK")):
			if id := "job-" + strings.Split(words[1], ".")[5]; m.dies(id, beforeAck) {
				_, _ = m.Conn.Write(p[:at])
				m.die(id, beforeAck)
			}
		}
	}
	return m.Conn.Write(p)
}

// pass tells whether the worker has lived through a step of a job.
func (m *mortal) pass(id string, at step) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dies(id, at) {
		m.die(id, at)
	}
	if at == beforeCall && !m.dead {
		m.calls[id]++
		m.inCall[id] = true
	}
	return !m.dead
}

// Complete is the provider: it takes a second.
func (m *mortal) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if m.pass(req.ID, beforeCall) && m.pass(req.ID, inCall) {
		select {
		case <-m.gone:
		case <-time.After(time.Second):
			switch {
			case !m.pass(req.ID, afterCall):
			case hopeless(req.ID):
				return nil, called(llm.CodeContextLength)
			default:
				return answer(req), nil
			}
		}
	}
	<-ctx.Done() // what is dead does nothing more
	return nil, context.Cause(ctx)
}

// hopeless are the jobs that end with a dead letter.
func hopeless(id string) bool {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "job-"))
	return n%7 == 0
}

func (m *mortal) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	panic("not asked")
}

// TestWorkersDieAtEachStep: of one job in twenty the worker dies, at one of the
// five steps, together with all that it has in hand.
func TestWorkersDieAtEachStep(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		f := &fleet{rig: newRig(t, nil), t: t, doomed: map[string]step{}, calls: map[string]int{}, excused: map[string]int{}, deaths: map[step]int{}}
		for i := 1; i <= *crashJobs; i++ {
			f.publish(t, "")
			if i%20 == 0 {
				f.doomed[subjects.JobOfSequence(uint64(i))] = steps[i/20%len(steps)]
			}
		}
		for range 4 {
			f.spawn()
		}
		for hours := 0; f.left(t) > 0; hours++ {
			require.Less(t, hours, 24, "%d jobs are left", f.left(t))
			pass(time.Hour / 4)
		}
		f.live.Wait()
		f.check(t)
	})
}

// TestAJobThatKillsItsWorkersIsGivenUp, so that it does not do so for ever.
func TestAJobThatKillsItsWorkersIsGivenUp(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		die := make(chan struct{})
		r := newRig(t, func(ctx context.Context, _ *llm.Request, _ int) (*llm.Response, error) {
			die <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		r.publish(t, "j1")
		for range 10 {
			w := r.start(t)
			<-die
			w.conn.Close()
			pass(31 * time.Second)
		}
		r.start(t)
		pass(time.Second)
		letter := r.letter(t, "j1")
		require.Equal(t, llm.CodeInternal, letter.Error.Code)
		require.Equal(t, uint64(11), letter.Deliveries)
		require.Zero(t, r.left(t))
	})
}

// check demands that every job has one answer or one dead letter, and no call
// without a reason.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	results, dead := state(t, f.js, jobs.ResultsStream), state(t, f.js, jobs.DeadStream)
	require.Equal(t, uint64(*crashJobs), results.Msgs+dead.Msgs, "one for each")
	require.Equal(t, uint64(*crashJobs), results.LastSeq+dead.LastSeq, "and never another")
	require.Equal(t, uint64(*crashJobs/7), dead.Msgs)
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(t, f.doomed)
	calls, excused := 0, 0
	for i := 1; i <= *crashJobs; i++ {
		id := subjects.JobOfSequence(uint64(i))
		require.Equal(t, !hopeless(id), f.result(t, id) != nil)
		require.Equal(t, hopeless(id), f.letter(t, id) != nil)
		require.Equal(t, 1+f.excused[id], f.calls[id], "%s: every further call is of a worker that died with the one before", id)
		calls, excused = calls+f.calls[id], excused+f.excused[id]
	}
	require.Equal(t, *crashJobs+excused, calls)
	for _, at := range steps {
		require.Equal(t, *crashJobs/100, f.deaths[at], at)
	}
	t.Logf("%d jobs, %d answers, %d dead letters; %v deaths; %d calls, %d of them since the worker died before the end of the job was stored",
		*crashJobs, results.Msgs, dead.Msgs, f.deaths, calls, excused)
}
