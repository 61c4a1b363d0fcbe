package limits

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Config of a Limiter. All but Log is required.
type Config struct {
	JetStream jetstream.JetStream
	Slots     *kv.Bucket // of who holds slots of concurrent requests
	Options   kv.Options // of the streams of counters
	Worker    string     // unique for each start
	Log       *slog.Logger
}

// Validate reports the first setting that is missing.
func (c *Config) Validate() error {
	switch {
	case c.JetStream == nil:
		return errors.New("limits: JetStream must be set")
	case c.Slots == nil:
		return errors.New("limits: Slots must be set")
	case c.Worker == "":
		return errors.New("limits: Worker must be set")
	}
	return nil
}

// Limiter admits requests within what the fleet has left of their limits. It is
// safe for concurrent use.
type Limiter struct {
	conn     *nats.Conn
	bucket   *kv.Bucket
	counters *counters
	slots    *slots
	fleet    *fleet
	clock    clock
	log      *slog.Logger

	policy atomic.Pointer[Policy]
	away   atomic.Bool  // this worker decides alone
	lost   atomic.Bool  // JetStream is out of reach, which is why
	tick   atomic.Int64 // beats of Run

	sweeping atomic.Bool
	returned int64 // the beat in which JetStream came back; of the sweep alone

	mu      sync.RWMutex
	tenants map[string]*tenant
	pools   map[string]*pool // by key

	ending  sync.RWMutex // guards closed; held while work is added
	closed  bool
	working sync.WaitGroup
}

var _ chain.Limiter = (*Limiter)(nil)

// New makes a Limiter that limits nobody until Load.
func New(c Config) (*Limiter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	conn := c.JetStream.Conn()
	l := &Limiter{conn: conn, bucket: c.Slots, counters: newCounters(c.JetStream, c.Options), fleet: newFleet(conn, c.Worker), log: c.Log,
		tenants: map[string]*tenant{}, pools: map[string]*pool{}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.slots = &slots{bucket: c.Slots, me: c.Worker, dead: l.fleet.dead}
	l.policy.Store(&Policy{})
	return l, nil
}

// Load replaces the policy. Requests under way finish with what they took; what
// the fleet has used of a limit that is only changed still counts.
func (l *Limiter) Load(p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tenants {
		clear(t.accounts)
	}
	l.policy.Store(&p)
	return nil
}

// Admit takes the request's place among the tenant's requests: their number in
// each window, and the number at once. Its error is a *chain.OverLimit around an
// *Exceeded, or the cause of ctx's end, and then nothing was taken. A nil Grant
// means that no limit applies.
func (l *Limiter) Admit(ctx context.Context, req *llm.Request) (chain.Grant, error) {
	a := l.account(req.Tenant, req.Feature)
	if a == nil {
		return nil, nil
	}
	g := &Grant{account: a, parts: make([]part, 0, len(a.once)+len(a.tokens)+len(a.usd))}
	now := a.now()
	for _, p := range a.once {
		if err := g.take(ctx, now, p, 1); err != nil {
			g.Settle(chain.Use{})
			return nil, forJob(req, err)
		}
	}
	return g, nil
}

// Degraded reports whether JetStream is out of reach and this worker decides
// alone.
func (l *Limiter) Degraded() bool { return l.down() }

// Workers is the number of workers that are known to live, this one included.
func (l *Limiter) Workers() int { return int(l.fleet.size()) }

func (l *Limiter) down() bool { return l.away.Load() }

// fell takes note of a trade that failed.
func (l *Limiter) fell(err error) {
	l.lost.Store(true)
	if !l.away.Swap(true) {
		l.log.Warn("limits: JetStream is out of reach; this worker admits its share of each limit", "error", err)
	}
}

// reach reports why a trade cannot be tried, and reads the server's clock before
// the first.
func (l *Limiter) reach(ctx context.Context) error {
	switch {
	case l.lost.Load():
		return errDown
	case !l.conn.IsConnected():
		l.fell(nats.ErrDisconnected)
		return errDown
	case l.clock.known():
		return nil
	}
	err := l.measure(ctx)
	if err != nil {
		l.fell(err)
	}
	return err
}

// measure reads the server's clock.
func (l *Limiter) measure(ctx context.Context) error {
	asked := time.Now()
	now, err := l.bucket.ServerTime(ctx)
	if err == nil {
		l.clock.set(now, asked)
	}
	return err
}

// begin starts work that Run waits for, unless Run has ended.
func (l *Limiter) begin(work func()) bool {
	l.ending.RLock()
	defer l.ending.RUnlock()
	if l.closed {
		return false
	}
	l.working.Go(work)
	return true
}

// pool finds a limit that is in use here, by its key.
func (l *Limiter) pool(key string) *pool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.pools[key]
}

// onCount hears what became of a counter.
func (l *Limiter) onCount(msg *nats.Msg) {
	key, window, ok := subjects.ParseLimitCounter(msg.Subject)
	if !ok {
		return
	}
	p := l.pool(key)
	if p == nil {
		return
	}
	r, err := parseCount(msg.Data)
	if err != nil {
		return
	}
	if seq, err := sequenceOf(msg); err == nil {
		p.heard(window, r.total, seq)
	}
}

// onSlots hears what became of a record of slots.
func (l *Limiter) onSlots(msg *nats.Msg) {
	p := l.pool(msg.Subject[len(subjects.SlotPrefix):])
	if p == nil {
		return
	}
	if seq, err := sequenceOf(msg); err == nil {
		p.heard(0, parseHolders(msg.Data).total(), seq)
	}
}
