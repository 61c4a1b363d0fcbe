package fleet

import (
	"context"
	"time"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/usage"
)

// Totals are read this often, and less often where there are so many that
// reading takes long: a twentieth of the time is spent on it at most.
const (
	costEvery = 10 * time.Second
	costShare = 20
)

// spending adds up the cost of one day.
type spending struct {
	day   string
	since time.Time
	usd   float64
}

// add books an amount; now may be in a new day, which begins at nothing.
func (s *spending) add(usd float64, now time.Time) {
	now = now.UTC()
	if day := now.Format(time.DateOnly); day != s.day {
		since := now.Truncate(24 * time.Hour)
		if s.day == "" {
			since = now
		}
		*s = spending{day: day, since: since}
	}
	s.usd += max(0, usd)
}

// spend reads the totals of the day again and again.
func (w *Watch) spend(ctx context.Context, bucket *kv.Bucket) {
	for {
		began := time.Now()
		w.spendOnce(ctx, bucket, began)
		select {
		case <-time.After(max(costEvery, costShare*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) spendOnce(ctx context.Context, bucket *kv.Bucket, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, costEvery)
	defer cancel()
	rows, err := usage.Read(ctx, bucket, now, now)
	total := 0.0
	for i := range rows {
		total += rows[i].CostUSD
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals = nil
	if err == nil {
		w.totals = &Cost{TodayUSD: total, Since: now.UTC().Truncate(24 * time.Hour), Counted: true}
	}
}

// costs prefers the totals, if they are of today. It needs the lock.
func (w *Watch) costs(now time.Time) Cost {
	w.cost.add(0, now)
	if t := w.totals; t != nil && t.Since.Equal(now.UTC().Truncate(24*time.Hour)) {
		return *t
	}
	return Cost{TodayUSD: w.cost.usd, Since: w.cost.since}
}
