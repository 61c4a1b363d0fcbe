package bus

import (
	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// refusal says why a request gets no slot.
type refusal int

const (
	none refusal = iota
	full
	unfair // its tenant holds so much that the free slots are kept for others
)

// greed is how many slots a tenant may hold for each that is free. One tenant
// alone can so hold four fifths of them all, two can hold four ninths each, and
// there is always a free one for somebody who comes only now.
const greed = 4

// shares counts what each tenant holds of a worker's slots. A nil *shares takes
// all requests for those of one tenant. It is locked by its slots.
type shares struct{ held map[string]int }

func newShares(tenants bool) *shares {
	if !tenants {
		return nil
	}
	return &shares{held: map[string]int{}}
}

// take books a slot of so many that are free, unless the tenant would hold too
// many. Everybody may hold one. Nobody waits: the bound moves with what is free.
func (s *shares) take(tenant string, free int) bool {
	if s == nil {
		return true
	}
	held := s.held[tenant]
	if held > 0 && held+1 > greed*(free-1) {
		return false
	}
	s.held[tenant] = held + 1
	return true
}

func (s *shares) give(tenant string) {
	if s == nil {
		return
	}
	if s.held[tenant]--; s.held[tenant] == 0 {
		delete(s.held, tenant)
	}
}

// tenantOf is whose slot a request would take. A header that nobody may believe
// is not looked at.
func (w *Worker) tenantOf(msg *nats.Msg) string {
	switch {
	case w.cfg.Tenants:
		_, tenant, _ := subjects.ParseComplete(msg.Subject)
		return tenant
	case w.cfg.TenantHeader:
		return msg.Header.Get(subjects.HeaderTenant)
	}
	return ""
}

func (w *Worker) busy(why refusal) *llm.Error {
	e := llm.Errorf(llm.CodeBusy, "all %d slots of the worker are taken", w.cfg.Slots)
	if why == unfair {
		e = llm.Errorf(llm.CodeBusy, "the tenant holds as many of the worker's %d slots as leaves room for others", w.cfg.Slots)
	}
	e.RetryAfterMS = w.cfg.BusyAfter.Milliseconds()
	return e
}
