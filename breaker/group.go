package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/llmbus/llmbus/kv"
)

// Config is what a Group works with. Every field is optional.
type Config struct {
	Conn     *nats.Conn    // failures are announced and heard on it; nil: this process counts alone
	Buckets  *kv.Buckets   // state is shared through them; nil: this process decides alone
	Worker   string        // names this process to others; unique for each start; default random
	Log      *slog.Logger  // default: none
	Interval time.Duration // between two re-reads of the bucket; 0 means 5 s
	OnChange func(Change)  // called by Run, one at a time and in order for each key; must not block long
}

// Change is one transition, told when it is settled: stored in the bucket,
// learned from it, or decided here while it is out of reach.
type Change struct {
	Key        string
	From, To   State
	Why        string
	Generation uint64
	CoolDown   time.Duration // Open: how long until the first probe
	By         string        // the worker that made it; empty after an operator's reset
	Mine       bool          // this process made it: true at one worker of the fleet while KV is in reach
}

// Group holds all breakers of one process.
type Group struct {
	conn     *nats.Conn
	store    *store // nil: local only
	worker   string
	log      *slog.Logger
	onChange func(Change)

	wake    chan struct{}
	changes chan Change

	mu       sync.Mutex
	breakers map[string]*Breaker
}

// New makes a group. It shares nothing before Run.
func New(c Config) (*Group, error) {
	if c.Buckets != nil && c.Conn == nil {
		return nil, errors.New("breaker group: buckets need the connection that failures are announced on")
	}
	g := &Group{
		conn: c.Conn, worker: cmp.Or(c.Worker, nuid.Next()), log: c.Log, onChange: c.OnChange,
		wake: make(chan struct{}, 1), changes: make(chan Change, 256), breakers: map[string]*Breaker{},
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if c.Buckets != nil {
		var err error
		if g.store, err = newStore(c, g.worker, g.log, g.follow); err != nil {
			return nil, fmt.Errorf("breaker group: %w", err)
		}
	}
	return g, nil
}

// Breaker returns the handle of a key; see subjects.BreakerKey. One key has one
// breaker, and the last settings given are those in force. Settings that do not
// Validate are the caller's mistake; zero fields take their defaults.
func (g *Group) Breaker(key string, s Settings) *Breaker {
	s = s.withDefaults()
	g.mu.Lock()
	b := g.breakers[key]
	if b == nil {
		b = &Breaker{key: key, group: g, settings: s, told: Change{To: Closed}}
		b.view.Store(&view{state: Closed, begun: time.Now()})
		g.breakers[key] = b
	}
	g.mu.Unlock()
	b.configure(s)
	if g.store != nil {
		if e, ok := g.store.mirror.Get(key); ok {
			b.learn(e)
		}
	}
	return b
}

// Degraded reports that KV is out of reach, so that this process decides alone.
func (g *Group) Degraded() bool { return g.store != nil && !g.store.reachable() }

// Ready is closed when this process knows the fleet's breakers for the first
// time; a worker that takes requests earlier may call a provider that is known
// to be down. Without buckets it is closed from the start.
func (g *Group) Ready() <-chan struct{} {
	if g.store != nil {
		return g.store.mirror.Ready()
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

// Run follows the bucket and the other workers' failures, shares what this
// process decides, and calls OnChange. It blocks until ctx ends, shares what is
// left within 2 s, and returns nil. It fails when the connection is closed.
func (g *Group) Run(ctx context.Context) error {
	defer g.tellRest()
	if g.conn != nil {
		sub, err := g.listen()
		if err != nil {
			return fmt.Errorf("listening to failures: %w", err)
		}
		defer func() { _ = sub.Unsubscribe() }() // the connection may be closed already
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { g.tellAll(ctx) })
	if g.store == nil {
		<-ctx.Done()
		return nil
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the last view is shared
	defer stop()
	sharing, fail := context.WithCancelCause(ctx)
	wg.Go(func() { fail(g.store.mirror.Run(following)) })
	g.shareAll(sharing)
	if ctx.Err() == nil {
		return context.Cause(sharing)
	}
	return nil
}

func (g *Group) all() []*Breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.breakers))
}

func (g *Group) lookup(key string) *Breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.breakers[key]
}

// kick makes Run look for something to share.
func (g *Group) kick() {
	select {
	case g.wake <- struct{}{}:
	default: // it has yet to look
	}
}

// report hands a change to Run. It never waits: a change that nobody takes,
// since Run does not run, is lost.
func (g *Group) report(c Change) {
	select {
	case g.changes <- c:
	default:
	}
}

func (g *Group) tellAll(ctx context.Context) {
	for {
		select {
		case c := <-g.changes:
			g.tell(c)
		case <-ctx.Done():
			return
		}
	}
}

// tellRest tells what came up while Run was ending.
func (g *Group) tellRest() {
	for {
		select {
		case c := <-g.changes:
			g.tell(c)
		default:
			return
		}
	}
}

func (g *Group) tell(c Change) {
	g.log.Info("breaker changed", "breaker", c.Key, "from", c.From, "to", c.To, "why", c.Why,
		"generation", c.Generation, "by", c.By, "mine", c.Mine)
	if g.onChange != nil {
		g.onChange(c)
	}
}
