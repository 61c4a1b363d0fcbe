package breaker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model is a fleet of machines around a bucket, with no I/O and no clock: every
// step that a network could delay, reorder between workers or lose is a step of
// its own, in an order that the fuzzer chooses.
type model struct {
	t       *testing.T
	now     time.Time
	workers []*worker
	bucket  learned // revision 0: empty
	last    Record  // that a worker stored
	lease   *lease
	started int
	era     int // what an operator's hand has ended
	rights  map[string]bool
}

type lease struct{ expiry time.Time }

type worker struct {
	machine
	view
	inbox []event  // pushes on their way
	claim *holding // a caller is out for the right
	probe *holding // and has it
}

type holding struct {
	epoch uint64
	lease *lease // nil: yet to be won
}

func newModel(t *testing.T, n int) *model {
	m := &model{t: t, now: time.Unix(1e9, 0), workers: make([]*worker, n), rights: map[string]bool{}}
	for i := range m.workers {
		m.start(i)
	}
	return m
}

func (m *model) start(i int) {
	m.started++
	s := Settings{Threshold: 2, ProbeTimeout: 2 * time.Second, MaxCoolDown: time.Minute}.withDefaults()
	m.workers[i] = &worker{
		machine: machine{Settings: s, worker: fmt.Sprint("w", m.started), luck: float64(i) / 10},
		view:    view{state: Closed, begun: m.now},
	}
}

func (m *model) do(w *worker, e event) effect {
	before := w.view
	after, effect := w.next(before, e, m.now)
	if effect == admit {
		if _, ok := e.(asked); ok {
			require.Equal(m.t, Closed, after.state)
			require.True(m.t, before.state == Closed || before.state == Cooling && !m.now.Before(before.until))
		}
	}
	require.LessOrEqual(m.t, len(after.failures), w.Threshold)
	require.LessOrEqual(m.t, after.coolDown, w.MaxCoolDown)
	require.GreaterOrEqual(m.t, after.epoch, before.epoch)
	w.view = after
	return effect
}

// step runs one step of one worker.
func (m *model) step(op, who byte) {
	i := int(who) % len(m.workers)
	w := m.workers[i]
	switch op % 14 {
	case 0, 1:
		m.ask(w)
	case 2:
		m.takeLease(w)
	case 3, 4:
		m.share(w, true)
	case 5:
		m.share(w, false)
	case 6, 7:
		if len(w.inbox) > 0 {
			m.do(w, w.inbox[0])
			w.inbox = w.inbox[1:]
		}
	case 8:
		m.endProbe(w, Kind(who/16%3))
	case 9:
		if m.do(w, failed{w.epoch - uint64(who/16%2), "timeout"}) == announce {
			for _, other := range m.workers {
				if other != w {
					other.inbox = append(other.inbox, heard{"timeout"})
				}
			}
		}
	case 10:
		m.now = m.now.Add(time.Duration(who) * 100 * time.Millisecond)
	case 11:
		m.do(w, cooled{time.Duration(who) * time.Second, "rate_limited"})
	case 12:
		if who > 200 {
			m.start(i)
		}
	case 13:
		m.operator(who)
	}
}

func (m *model) ask(w *worker) {
	if m.do(w, asked{}) == claim {
		w.claim = &holding{epoch: w.epoch}
	}
}

func (m *model) takeLease(w *worker) {
	if w.claim == nil || w.claim.lease != nil {
		return
	}
	if m.lease != nil && m.now.Before(m.lease.expiry) {
		m.do(w, lost{w.claim.epoch})
		w.claim = nil
		return
	}
	m.lease = &lease{m.now.Add(w.machine.lease())}
	if m.do(w, won{w.claim.epoch}) != admit {
		w.claim, m.lease = nil, nil
		return
	}
	w.claim.epoch, w.claim.lease = w.epoch, m.lease
}

func (m *model) giveBack(l *lease) {
	if m.lease == l {
		m.lease = nil
	}
}

// share is one compare-and-swap and what follows, whose reply may be lost.
func (m *model) share(w *worker, reply bool) {
	if w.pending {
		r := w.record(m.now)
		if w.revision == m.bucket.revision {
			m.store(r)
			if !reply {
				return
			}
			m.do(w, shared{r.Generation, m.bucket.revision})
		} else {
			m.do(w, m.read())
		}
	}
	if c := w.claim; c != nil && c.lease != nil && !w.pending {
		m.settle(w, c)
	}
}

// settle ends a claim: the right is there only if nothing came between.
func (m *model) settle(w *worker, c *holding) {
	w.claim = nil
	if c.epoch == w.epoch && m.now.Before(c.lease.expiry) {
		m.grant(w, c)
		return
	}
	m.do(w, probed{epoch: c.epoch, kind: Neutral})
	m.giveBack(c.lease)
}

// store checks what may follow what in the bucket.
func (m *model) store(r Record) {
	if by := m.bucket.record.By; by != "garbage" && by != "operator" { // who comes after those cannot know
		if r.State == Closed {
			require.Equal(m.t, HalfOpen, m.last.State, "closed without a probe")
			require.Equal(m.t, m.last.Generation+1, r.Generation, "closed by a probe of another generation")
			require.Equal(m.t, m.last.By, r.By, "closed by another than the prober")
		}
		require.Greater(m.t, r.Generation, m.last.Generation)
	}
	m.last = r
	m.push(learned{record: r, revision: m.bucket.revision + 1, stored: m.now})
}

func (m *model) push(e learned) {
	m.bucket = e
	for _, w := range m.workers {
		w.inbox = append(w.inbox, m.read())
	}
}

func (m *model) read() event {
	switch {
	case m.bucket.revision == 0:
		return vanished{}
	case m.bucket.record.By == "operator":
		return reset{m.bucket.revision}
	case m.bucket.record.By == "garbage":
		return garbled{m.bucket.revision}
	}
	return m.bucket
}

func (m *model) grant(w *worker, c *holding) {
	right := fmt.Sprint(m.era, "/", w.generation)
	require.False(m.t, m.rights[right], "two hold the right of generation %s", right)
	m.rights[right] = true
	for _, other := range m.workers {
		if other != w && other.probe != nil {
			require.False(m.t, m.now.Before(other.probe.lease.expiry), "two probes at once")
		}
	}
	w.probe = c
}

func (m *model) endProbe(w *worker, kind Kind) {
	p := w.probe
	if p == nil {
		return
	}
	m.do(w, probed{epoch: p.epoch, kind: kind, why: "timeout"})
	w.probe = nil
	m.share(w, true)
	if !w.pending {
		m.giveBack(p.lease)
	}
}

func (m *model) operator(who byte) {
	switch {
	case who > 240:
		m.era++
		m.push(learned{record: Record{By: "operator"}, revision: m.bucket.revision + 1})
	case who > 220:
		m.era++
		m.push(learned{record: Record{By: "garbage"}, revision: m.bucket.revision + 1})
	}
}

func FuzzFleet(f *testing.F) {
	f.Add([]byte{9, 0, 9, 0, 3, 0, 6, 1, 10, 200, 0, 0, 2, 0, 3, 0, 8, 16, 0, 1, 2, 1, 3, 1})
	f.Add([]byte{9, 0, 9, 1, 5, 0, 3, 1, 10, 250, 0, 0, 0, 1, 2, 1, 2, 0, 3, 1, 3, 0, 10, 40, 0, 2, 2, 2, 3, 2, 8, 17})
	f.Fuzz(func(t *testing.T, steps []byte) {
		m := newModel(t, 3)
		for i := 0; i+1 < len(steps); i += 2 {
			m.step(steps[i], steps[i+1])
		}
	})
}

// TestFleetAtRandom walks far more of the same model than the seeds above.
func TestFleetAtRandom(t *testing.T) {
	granted := 0
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := newModel(t, 2+int(seed%3))
		for range 400 {
			m.step(byte(random.Uint32()), byte(random.Uint32()))
		}
		granted += len(m.rights)
	}
	require.Greater(t, granted, 3000, "the walk comes to probes")
}
