package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// Row is the total of one key over all workers.
type Row struct {
	Key
	Totals
}

// Read adds up what all workers counted on the UTC days of from to to, both
// included. The rows come in the order of their keys.
func Read(ctx context.Context, bucket *kv.Bucket, from, to time.Time) ([]Row, error) {
	rows := map[Key]*Row{}
	last := to.UTC().Format(DayFormat)
	for day := from.UTC(); day.Format(DayFormat) <= last; day = day.AddDate(0, 0, 1) {
		entries, err := bucket.List(ctx, subjects.UsageOf(day.Format(DayFormat)))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			k, t, err := decode(e)
			if err != nil {
				return nil, err
			}
			add(rows, k, &t)
		}
	}
	return sorted(rows), nil
}

func decode(e kv.Entry) (Key, Totals, error) {
	var t Totals
	day, parts, ok := subjects.ParseUsageKey(e.Key)
	if !ok {
		return Key{}, t, fmt.Errorf("key %q of llm_usage is none of a total; remove it with: nats kv del llm_usage %q", e.Key, e.Key)
	}
	if err := json.Unmarshal(e.Value, &t); err != nil {
		return Key{}, t, fmt.Errorf("read %s in llm_usage: %w", e.Key, err)
	}
	return Key{day, parts[0], parts[1], parts[2], parts[3]}, t, nil
}

// Dimension is one part of a Key.
type Dimension string

// Dimensions that totals can be kept apart by.
const (
	ByDay      Dimension = "day"
	ByTenant   Dimension = "tenant"
	ByFeature  Dimension = "feature"
	ByProvider Dimension = "provider"
	ByModel    Dimension = "model"
)

// Dimensions are all there are, in the order of a Key.
func Dimensions() []Dimension {
	return []Dimension{ByDay, ByTenant, ByFeature, ByProvider, ByModel}
}

// Sum adds rows up by some dimensions; the others are left empty. Without any
// the result is one row, or none of no rows.
func Sum(rows []Row, by ...Dimension) []Row {
	sums := map[Key]*Row{}
	for i := range rows {
		var k Key
		for _, d := range by {
			*k.part(d) = *rows[i].part(d)
		}
		add(sums, k, &rows[i].Totals)
	}
	return sorted(sums)
}

// Value is one part of the key.
func (k Key) Value(d Dimension) string { return *k.part(d) }

func (k *Key) part(d Dimension) *string {
	switch d {
	case ByDay:
		return &k.Day
	case ByTenant:
		return &k.Tenant
	case ByFeature:
		return &k.Feature
	case ByProvider:
		return &k.Provider
	}
	return &k.Model
}

func add(rows map[Key]*Row, k Key, t *Totals) {
	if rows[k] == nil {
		rows[k] = &Row{Key: k}
	}
	rows[k].Add(t)
}

func sorted(rows map[Key]*Row) []Row {
	list := make([]Row, 0, len(rows))
	for r := range maps.Values(rows) {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Feature, b.Feature),
			cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return list
}
