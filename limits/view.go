package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// Usage is what a tenant has used of one limit in the present window, with what
// workers have leased and not used yet.
type Usage struct {
	Tenant   string  `json:"tenant"`
	Feature  string  `json:"feature,omitempty"` // empty: all features
	Limit    string  `json:"limit"`             // its name
	Used     float64 `json:"used"`              // of usd in dollars
	Amount   float64 `json:"amount"`            // the same
	ResetsMS int64   `json:"resets_ms,omitempty"`
}

// Read lists what tenants use now of the limits of a policy: those that have
// used any, and those that the policy names. It changes nothing.
func Read(ctx context.Context, js jetstream.JetStream, slots *kv.Bucket, p *Policy) ([]Usage, error) {
	server, err := slots.ServerTime(ctx)
	if err != nil {
		return nil, err
	}
	v := view{policy: p, now: server.UnixNano(), rows: map[string]*Usage{}}
	v.expectNamed()
	for _, w := range Windows() {
		if err := v.readCounters(ctx, js, w); err != nil {
			return nil, fmt.Errorf("read what was counted in windows of a %s: %w", w, err)
		}
	}
	if err := v.readSlots(ctx, slots); err != nil {
		return nil, err
	}
	list := make([]Usage, 0, len(v.rows))
	for _, u := range v.rows {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Limit, b.Limit))
	})
	return list, nil
}

type view struct {
	policy *Policy
	now    int64
	rows   map[string]*Usage // by tenant, feature and name
}

// expectNamed makes a row for every limit of the tenants that are named.
func (v *view) expectNamed() {
	for tenant := range v.policy.Tenants.Tenants {
		v.expect(tenant, "")
	}
	for feature, rules := range v.policy.Features {
		for tenant := range rules.Tenants {
			v.expect(tenant, feature)
		}
	}
}

func (v *view) expect(tenant, feature string) {
	for _, s := range v.policy.of(tenant, feature) {
		v.row(s)
	}
}

func (v *view) row(s scoped) *Usage {
	key := subjects.LimitKey("", s.tenant, s.feature, s.Name())
	u := v.rows[key]
	if u == nil {
		u = &Usage{Tenant: s.tenant, Feature: s.feature, Limit: s.Name(), Amount: s.people(s.Amount)}
		if s.Kind != Concurrent {
			u.ResetsMS = frameOf(s.Window, s.tenant).left(v.now).Milliseconds()
		}
		v.rows[key] = u
	}
	return u
}

// people makes dollars of nano-dollars.
func (l Limit) people(n int64) float64 {
	if l.Kind == USD {
		return float64(n) / NanoUSD
	}
	return float64(n)
}

// used notes what is used of a limit, if it is one of the policy.
func (v *view) used(tenant, feature, name string, n int64) {
	list := v.policy.of(tenant, feature)
	i := slices.IndexFunc(list, func(s scoped) bool { return s.feature == feature && s.Name() == name })
	if i >= 0 {
		v.row(list[i]).Used = list[i].people(n)
	}
}

func (v *view) readCounters(ctx context.Context, js jetstream.JetStream, w Window) error {
	s, err := js.Stream(ctx, subjects.LimitStream(string(w)))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // no limit has needed it yet
	}
	if err != nil {
		return err
	}
	return each(ctx, s, func(msg jetstream.Msg) {
		key, number, ok := subjects.ParseLimitCounter(msg.Subject())
		if !ok {
			return
		}
		_, tenant, feature, kind, ok := subjects.ParseLimitKey(key)
		if !ok || frameOf(w, tenant).number(v.now) != number {
			return
		}
		if r, err := parseCount(msg.Data()); err == nil {
			v.used(tenant, feature, Limit{Kind: Kind(kind), Window: w}.Name(), r.total)
		}
	})
}

// batch is how many counters are fetched at once.
const batch = 500

// each calls f with every counter of a stream.
func each(ctx context.Context, s jetstream.Stream, f func(jetstream.Msg)) error {
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return err
	}
	for left := s.CachedInfo().State.Msgs; left > 0; {
		got, err := c.Fetch(int(min(left, batch)), jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		n := uint64(0)
		for msg := range got.Messages() {
			f(msg)
			n++
		}
		if err := got.Error(); err != nil || n == 0 { // the others were replaced meanwhile
			return err
		}
		left -= min(left, n)
	}
	return nil
}

func (v *view) readSlots(ctx context.Context, bucket *kv.Bucket) error {
	entries, err := bucket.List(ctx, ">")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if tenant, feature, ok := subjects.ParseSlotKey(e.Key); ok {
			v.used(tenant, feature, string(Concurrent), parseHolders(e.Value).total())
		}
	}
	return nil
}
