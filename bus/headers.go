package bus

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// envelope is the memory of a message that is published, for one after another.
type envelope struct {
	data   []byte
	header nats.Header
	values []string // of header, one each
}

func newEnvelope() *envelope {
	return &envelope{header: make(nats.Header, 4), values: make([]string, 0, 4)}
}

// headers of a reply, a first or a last frame, until it is called again. resp and
// e may be nil.
func (v *envelope) headers(id string, resp *llm.Response, e *llm.Error) nats.Header {
	clear(v.header)
	v.values = v.values[:0]
	if id != "" {
		v.set(subjects.HeaderRequestID, id)
	}
	if resp != nil {
		if resp.Provider != "" {
			v.set(subjects.HeaderProvider, resp.Provider)
		}
		v.set(subjects.HeaderServedBy, string(resp.ServedBy))
	}
	if e != nil {
		v.set(subjects.HeaderError, e.Error())
		v.set(subjects.HeaderErrorCode, strconv.Itoa(e.Code.Status()))
		if e.RetryAfterMS > 0 {
			v.set(subjects.HeaderRetryAfter, strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
		}
	}
	return v.header
}

func (v *envelope) set(name, value string) {
	v.values = append(v.values, value)
	v.header[name] = v.values[len(v.values)-1 : len(v.values) : len(v.values)]
}

// applyHeaders copies what the headers of a request say into req.
func (w *Worker) applyHeaders(req *llm.Request, h nats.Header) error {
	req.TraceParent = h.Get(subjects.HeaderTraceParent)
	if req.Class == "" {
		req.Class = llm.Class(h.Get(subjects.HeaderClass))
	}
	switch req.Class {
	case "", llm.ClassInteractive, llm.ClassBackground, llm.ClassStructured:
	default:
		return llm.Errorf(llm.CodeInvalidRequest, "%s must be interactive, background or structured", subjects.HeaderClass)
	}
	if !w.cfg.TenantHeader || req.Tenant != "" {
		return nil
	}
	if req.Tenant = h.Get(subjects.HeaderTenant); req.Tenant != "" && !subjects.ValidRequestID(req.Tenant) {
		return llm.Errorf(llm.CodeInvalidRequest, "%s must be at most %d printable ASCII characters without space", subjects.HeaderTenant, subjects.MaxRequestID)
	}
	return nil
}

// pace reads how often the caller wants to hear of the worker. A whole answer
// has pings only if its caller asks for them and named the subject they go to.
func (w *Worker) pace(j *admitted, id string, h nats.Header) error {
	j.pingEvery = w.cfg.PingEvery
	text := h.Get(subjects.HeaderPingMS)
	if text == "" {
		return nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return llm.Errorf(llm.CodeInvalidRequest, "%s must be a whole number of milliseconds above 0", subjects.HeaderPingMS)
	}
	if ms < j.pingEvery.Milliseconds() {
		j.pingEvery = max(minPingEvery, time.Duration(ms)*time.Millisecond)
	}
	if id != "" && j.frames == "" {
		j.pings = subjects.Stream(j.req.Tenant, id)
	}
	return nil
}

// allowed is the time from arrival that a request has: the least of what its
// header, its body and the worker say. It is not positive for a request that
// was late when it was sent.
func (w *Worker) allowed(req *llm.Request, h nats.Header) (time.Duration, error) {
	limit := w.cfg.MaxTimeout
	if req.TimeoutMS > 0 {
		limit = min(limit, time.Duration(req.TimeoutMS)*time.Millisecond)
	}
	text := h.Get(subjects.HeaderTimeoutMS)
	if text == "" {
		return limit, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, llm.Errorf(llm.CodeInvalidRequest, "%s must be a whole number of milliseconds", subjects.HeaderTimeoutMS)
	}
	return min(limit, time.Duration(min(max(ms, -1), maxTimeout.Milliseconds()))*time.Millisecond), nil
}
