package usage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// maxRows bounds the totals that a worker keeps: about 20 MB.
const maxRows = 50_000

// Config is what a Usage needs.
type Config struct {
	Bucket   *kv.Bucket    // required
	Worker   string        // required; unique for each start
	Interval time.Duration // between two flushes; 0 means 1 s
	Log      *slog.Logger  // nil logs nothing
}

// Validate names what is missing.
func (c Config) Validate() error {
	switch {
	case c.Bucket == nil:
		return errors.New("usage config: Bucket is required")
	case c.Worker == "":
		return errors.New("usage config: Worker is required")
	}
	return nil
}

// Usage counts what one worker does. It is safe for concurrent use.
type Usage struct {
	Config
	room int // totals in memory, at most

	mu      sync.Mutex // never held over I/O
	rows    map[rowKey]*row
	changed []*row    // to be put
	behind  time.Time // since when nothing could be put; zero: all is well
	full    bool      // there was no room for a total today
	told    bool      // and that was said
	swept   int64     // the day on which rows of past days were last dropped
}

var _ chain.Follower = (*Usage)(nil)

// rowKey is a Key whose day is a number, which costs nothing to make.
type rowKey struct {
	day                              int64 // since 1970
	tenant, feature, provider, model string
}

// row is one total and what is to be done about it.
type row struct {
	rowKey
	Totals
	changed bool
}

const daySeconds = 24 * 60 * 60

// New makes a Usage. Nothing is put before Run.
func New(c Config) (*Usage, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Interval = cmp.Or(c.Interval, time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Usage{Config: c, room: maxRows, rows: make(map[rowKey]*row)}, nil
}

// RequestBegan does nothing: a request counts when it ends.
func (u *Usage) RequestBegan(ctx context.Context, _ *llm.Request) context.Context { return ctx }

// RequestEnded counts a request under the model that answered it, or under no
// provider.
func (u *Usage) RequestEnded(_ context.Context, req *llm.Request, e chain.Ending) {
	var provider, model string
	if e.Response != nil && e.Response.ServedBy == llm.ServedByModel {
		provider, model = e.Response.Provider, e.Response.Model
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.at(req, provider, model)
	r.Requests++
	if e.Error != nil {
		r.Failed++
	}
}

// AttemptBegan does nothing: a call counts when it ends.
func (u *Usage) AttemptBegan(ctx context.Context, _ *llm.Request, _, _ string) context.Context {
	return ctx
}

// AttemptEnded counts a call, its tokens and its price.
func (u *Usage) AttemptEnded(_ context.Context, req *llm.Request, a *llm.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at(req, a.Provider, a.Model).call(a)
}

// at returns today's row, which is about to change. Called with mu held.
func (u *Usage) at(req *llm.Request, provider, model string) *row {
	k := rowKey{time.Now().Unix() / daySeconds, req.Tenant, req.Feature, provider, model}
	r := u.rows[k]
	if r == nil {
		r = u.open(k)
	}
	if !r.changed {
		r.changed = true
		u.changed = append(u.changed, r)
	}
	return r
}

// open makes a row, if there is room for it.
func (u *Usage) open(k rowKey) *row {
	if len(u.rows) >= u.room {
		u.full = true // until the day ends
		k.tenant, k.feature = Others, Others
		if r := u.rows[k]; r != nil {
			return r
		}
	}
	// A name may be a piece of a whole message, which must not stay for its sake.
	k.tenant, k.feature = strings.Clone(k.tenant), strings.Clone(k.feature)
	k.provider, k.model = strings.Clone(k.provider), strings.Clone(k.model)
	r := &row{rowKey: k}
	u.rows[k] = r
	return r
}

// Behind says since when this worker could not put what it counted. ok is false
// while all is well.
func (u *Usage) Behind() (since time.Time, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.behind, !u.behind.IsZero()
}
