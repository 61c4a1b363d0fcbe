package usage

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/llmbus/llmbus/subjects"
)

const (
	putPatience  = 2 * time.Second // for one put
	lastPatience = 5 * time.Second // for all that is left when a worker ends
)

// Run puts what changed, every Interval, until ctx ends and then once more. It
// returns nil: what cannot be put is logged and tried again.
func (u *Usage) Run(ctx context.Context) error {
	tick := time.NewTicker(u.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.flush(ctx)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
			defer cancel()
			u.flush(ctx)
			u.mourn()
			return nil
		}
	}
}

// mourn says what is lost with this process.
func (u *Usage) mourn() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.changed); n > 0 {
		u.Log.LogAttrs(context.Background(), slog.LevelError, "usage is lost: it could not be put into llm_usage", slog.Int("totals", n))
	}
}

// flush puts each row that changed, one after the other: a worker with very many
// of them takes longer and does not press the bucket harder.
func (u *Usage) flush(ctx context.Context) {
	rows, full := u.take()
	if full {
		u.Log.LogAttrs(ctx, slog.LevelWarn, "usage of further tenants and features is counted together", slog.String("as", Others), slog.Int("totals", u.room))
	}
	for i, r := range rows {
		if ctx.Err() != nil { // told to end; what is left comes with the last flush
			u.giveBack(rows[i:])
			return
		}
		if err := u.put(ctx, r); err != nil {
			u.giveBack(rows[i:])
			u.reached(ctx, err)
			return
		}
	}
	if len(rows) > 0 {
		u.reached(ctx, nil)
	}
	u.forget()
}

// take empties the list of what changed. full is true once a day, after a
// total had to be counted under Others.
func (u *Usage) take() (rows []*row, full bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	rows, full = u.changed, u.full && !u.told
	u.changed, u.told = nil, u.full
	return rows, full
}

func (u *Usage) put(ctx context.Context, r *row) error {
	u.mu.Lock()
	totals := r.Totals
	r.changed = false
	u.mu.Unlock()
	value, err := json.Marshal(&totals)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putPatience)
	defer cancel()
	_, err = u.Bucket.Put(ctx, subjects.UsageKey(dayOf(r.day), r.tenant, r.feature, r.provider, r.model, u.Worker), value)
	return err
}

// giveBack has rows put again that were not.
func (u *Usage) giveBack(rows []*row) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, r := range rows {
		if i == 0 && r.changed && slices.Contains(u.changed, r) { // it changed while its put failed
			continue
		}
		r.changed = true
		u.changed = append(u.changed, r)
	}
}

// reached notes whether the bucket could be reached, and says when that changes.
func (u *Usage) reached(ctx context.Context, err error) {
	u.mu.Lock()
	was := u.behind
	switch {
	case err == nil:
		u.behind = time.Time{}
	case was.IsZero():
		u.behind = time.Now()
	}
	u.mu.Unlock()
	switch {
	case err != nil && was.IsZero():
		u.Log.LogAttrs(ctx, slog.LevelWarn, "usage cannot be put into llm_usage; it is kept and tried again", slog.Any("error", err))
	case err == nil && !was.IsZero():
		u.Log.LogAttrs(ctx, slog.LevelInfo, "usage is put into llm_usage again", slog.Duration("after", time.Since(was)))
	}
}

// forget drops rows of past days, which change no more once they are put.
func (u *Usage) forget() {
	today := time.Now().Unix() / daySeconds
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.swept == today {
		return
	}
	u.swept, u.full = today, false
	for k, r := range u.rows {
		if k.day < today && !r.changed {
			delete(u.rows, k)
		}
	}
}

// DayFormat is how a day is written.
const DayFormat = time.DateOnly

func dayOf(n int64) string { return time.Unix(n*daySeconds, 0).UTC().Format(DayFormat) }
