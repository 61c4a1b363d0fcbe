package jobs

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// label is what the subject and the headers say of a job.
type label struct {
	id, feature string
	tenant      string // in the subject
	key         string // of its subjects and its history
	replay      int
	published   time.Time // by the server's clock
	header      nats.Header
}

// labelOf never fails, since a job that cannot be read needs a dead letter as
// well.
func labelOf(subject string, h nats.Header, sequence uint64, published time.Time) label {
	l := label{published: published, header: h}
	var ok bool
	if l.feature, l.tenant, ok = subjects.ParseJob(subject); !ok {
		l.feature, _, _ = strings.Cut(strings.TrimPrefix(subject, subjects.Job("")), ".")
		l.tenant = ""
	}
	for _, name := range []string{subjects.HeaderRequestID, subjects.HeaderMsgID} {
		if id := h.Get(name); l.id == "" && subjects.ValidRequestID(id) {
			l.id = id
		}
	}
	l.id = cmp.Or(l.id, subjects.JobOfSequence(sequence))
	l.key = subjects.JobKey(l.tenant, l.id)
	l.replay = replayOf(h)
	return l
}

func replayOf(h nats.Header) int {
	n, err := strconv.Atoi(h.Get(subjects.HeaderReplay))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// job is one delivery of a job.
type job struct {
	label
	msg      jetstream.Msg
	delivery uint64 // 1 for the first
}

func newJob(msg jetstream.Msg) (*job, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	return &job{label: labelOf(msg.Subject(), msg.Headers(), meta.Sequence.Stream, meta.Timestamp), msg: msg, delivery: meta.NumDelivered}, nil
}

// request decodes the job. A try is neither streamed nor hurried.
func (w *Worker) request(j *job) (*llm.Request, error) {
	if id := j.header.Get(subjects.HeaderRequestID); id != "" && !subjects.ValidRequestID(id) {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "%s must be 1 to %d printable ASCII characters without space", subjects.HeaderRequestID, subjects.MaxRequestID)
	}
	feature, tenant, ok := subjects.ParseJob(j.msg.Subject())
	switch {
	case !ok:
		return nil, llm.Errorf(llm.CodeInvalidRequest, "the feature in the subject must be %s, and a tenant behind it %s, escaped", subjects.FeatureRule, subjects.TenantRule)
	case tenant != "" && !w.cfg.Tenants:
		return nil, llm.Errorf(llm.CodeInvalidRequest, "the subject has a tenant, and the workers take none")
	case tenant == "" && w.cfg.Tenants:
		return nil, llm.Errorf(llm.CodePolicyDenied, "this fleet serves tenants only, and the subject has none")
	}
	req, err := llm.DecodeRequest(j.msg.Data())
	if err != nil {
		return nil, err
	}
	req.ID, req.Feature, req.Tenant, req.Job = j.id, feature, tenant, true
	req.Stream, req.StreamTo, req.Class = false, "", llm.ClassBackground
	req.TraceParent = j.header.Get(subjects.HeaderTraceParent)
	if w.cfg.TenantHeader && tenant == "" {
		if req.Tenant = j.header.Get(subjects.HeaderTenant); req.Tenant != "" && !subjects.ValidRequestID(req.Tenant) {
			return nil, llm.Errorf(llm.CodeInvalidRequest, "%s must be at most %d printable ASCII characters without space", subjects.HeaderTenant, subjects.MaxRequestID)
		}
	}
	return req, nil
}

// lifetime is how long after its publication the job is given up.
func (w *Worker) lifetime(j *job) (time.Duration, error) {
	text := j.header.Get(subjects.HeaderExpiresMS)
	if text == "" {
		return w.cfg.Expiry, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 {
		return 0, llm.Errorf(llm.CodeInvalidRequest, "%s must be a whole number of milliseconds, 1 or more", subjects.HeaderExpiresMS)
	}
	return time.Duration(min(ms, MaxExpiry.Milliseconds())) * time.Millisecond, nil
}
