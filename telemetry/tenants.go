package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// earned is how many requests give a tenant a label of its own. A caller that
// makes up a tenant for each request takes no label from those that come again.
const earned = 4

// tenants decides which tenants have a label.
type tenants struct {
	most  int
	rest  *tenantSeries
	named atomic.Pointer[map[string]*tenantSeries] // copied to be changed; at most most

	mu     sync.Mutex
	visits map[string]int // of the others, lately; bounded as well
}

// tenantSeries are the attributes of one label, made once.
type tenantSeries struct{ total, input, output []metric.AddOption }

func newTenants(most int) *tenants {
	t := &tenants{most: most, rest: newTenantSeries(other), visits: map[string]int{}}
	t.named.Store(&map[string]*tenantSeries{})
	return t
}

func newTenantSeries(label string) *tenantSeries {
	tenant := keyTenant.String(label)
	return &tenantSeries{total: adding(tenant), input: adding(tenant, keyTokenType.String("input")), output: adding(tenant, keyTokenType.String("output"))}
}

// series are those of the tenant, or of all that have none of their own.
func (t *tenants) series(tenant string) *tenantSeries {
	if s, ok := (*t.named.Load())[tenant]; ok {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	named := *t.named.Load()
	if len(named) >= t.most {
		return t.rest
	}
	if len(t.visits) >= 16*t.most {
		clear(t.visits)
	}
	if t.visits[tenant]++; t.visits[tenant] < earned {
		return t.rest
	}
	delete(t.visits, tenant)
	s := newTenantSeries(hash(tenant))
	next := maps.Clone(named)
	next[tenant] = s
	t.named.Store(&next)
	return s
}

// adding and recording make the attributes of a series once, so that a request
// makes none.
func adding(attributes ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}

func recording(attributes ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}
