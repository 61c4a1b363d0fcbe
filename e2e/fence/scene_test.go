package fence

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// scene is a site at work, with a victim, an attacker, and wiretaps that hear
// everything of the workers' account and of the victim's.
type scene struct {
	*duties         // of the victim
	victim   string // as the workers know it; empty without tenants
	attacker string // the same
	enemy    *nats.Conn
	asEnemy  *client.Client
	taps     []*tap
}

func newScene(t *testing.T, f form) *scene {
	t.Helper()
	s := serve(t, f)
	var log lines
	s.work(t, 2, &log)
	sc := &scene{duties: newDuties(t, s), victim: f.tenant(f.callers[0]), attacker: f.tenant(f.callers[1])}
	sc.enemy = s.dial(t, f.callers[1])
	sc.asEnemy = s.client(t, sc.enemy, f.callers[1])
	sc.taps = []*tap{listen(t, s.dial(t, "operator"))}
	if f.tenants && !f.says {
		sc.taps = append(sc.taps, listen(t, s.dial(t, f.callers[0])))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return sc
}

// forms runs an attack under each configuration, or those with tenants.
func onEach(t *testing.T, tenantsOnly bool, attack func(*testing.T, *scene)) {
	for _, f := range forms {
		if f.tenants || !tenantsOnly {
			t.Run(f.file, func(t *testing.T) { attack(t, newScene(t, f)) })
		}
	}
}

// own is a subject as a caller spells it that the workers know as that tenant.
func (sc *scene) own(tenant, complete string) string {
	if sc.says {
		return complete + "." + tenant
	}
	return complete
}

// settled waits until what the attacker sent has had its effects: what it may do
// is served after it, in order.
func (sc *scene) settled(t *testing.T) {
	t.Helper()
	flush(t, sc.enemy)
	_, err := sc.asEnemy.Complete(t.Context(), question("default", "hello"))
	require.NoError(t, err)
	for _, tap := range sc.taps {
		flush(t, tap.nc)
	}
}

// tap records what is published.
type tap struct {
	nc   *nats.Conn
	mu   sync.Mutex
	seen []*nats.Msg
}

func listen(t *testing.T, nc *nats.Conn) *tap {
	t.Helper()
	tp := &tap{nc: nc}
	_, err := nc.Subscribe(">", func(m *nats.Msg) {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		tp.seen = append(tp.seen, m)
	})
	require.NoError(t, err)
	flush(t, nc)
	return tp
}

// marked are the subjects of messages that hold a mark.
func (tp *tap) marked(mark string) (list []string) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, m := range tp.seen {
		if bytes.Contains(m.Data, []byte(mark)) {
			list = append(list, m.Subject)
		}
	}
	return list
}

// on are the payloads of messages on a subject.
func (tp *tap) on(subject string) (list []string) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for _, m := range tp.seen {
		if m.Subject == subject {
			list = append(list, string(m.Data))
		}
	}
	return list
}

// live has the victim use everything that leaves traces.
func (sc *scene) live(t *testing.T) {
	t.Helper()
	sc.request(t)
	sc.stream(t)
	sc.framesOnTheReply(t)
	sc.resume(t)
	sc.idempotency(t)
	sc.duties.jobs(t)
	_, err := sc.buckets.Flags.Put(t.Context(), "feature.other", []byte("off"))
	require.NoError(t, err)
}

// hang begins a request of the victim that ends when it is cancelled.
func (sc *scene) hang(t *testing.T, id string) (ended <-chan error) {
	t.Helper()
	before := sc.sim.Calls("sim-hang")
	end := make(chan error, 1)
	go func() {
		req := question("silent", "hello")
		req.ID = id
		_, err := sc.client.Complete(t.Context(), req)
		end <- err
	}()
	require.Eventually(t, func() bool { return sc.sim.Calls("sim-hang") > before }, patience, tick)
	return end
}

// alive demands that a request goes on for a while.
func alive(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.Fail(t, "the victim's request has ended", "%v", err)
	case <-time.After(300 * time.Millisecond):
	}
}

// job stores one of the victim that ends with a dead letter, and returns it.
func (sc *scene) job(t *testing.T, c *client.Client) *llm.Job {
	t.Helper()
	req := question("default", "a secret")
	req.DataClass = "secret"
	job, err := c.Submit(t.Context(), req)
	require.NoError(t, err)
	return job
}

var breakerKey = subjects.BreakerKey("sim", "good")
