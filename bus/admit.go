package bus

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// admitted is a request that the worker has taken on.
type admitted struct {
	req      *llm.Request
	key      string // among the requests under way
	deadline time.Time
	reply    string // where the whole Response goes, or the frames if there is no subject for them; may be empty
	frames   string // where frames go, empty unless streamed
	capture  string // where they are kept, too; empty unless resumable

	pings     string        // where pings go while a whole answer is awaited; empty for none
	pingEvery time.Duration // longest silence
	running   running
}

// inbox reports whether the frames go to the reply subject.
func (j *admitted) inbox() bool { return j.frames != "" && j.frames == j.reply }

// admit decodes a request and decides where its answer goes. It does not look
// at the reply subject's shape.
func (w *Worker) admit(msg *nats.Msg, arrived time.Time) (*admitted, error) {
	id := msg.Header.Get(subjects.HeaderRequestID)
	if id != "" && !subjects.ValidRequestID(id) {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "%s must be 1 to %d printable ASCII characters without space", subjects.HeaderRequestID, subjects.MaxRequestID)
	}
	req, err := llm.DecodeRequest(msg.Data)
	if err != nil {
		return nil, err
	}
	var ok bool
	if req.Feature, req.Tenant, ok = subjects.ParseComplete(msg.Subject); !ok {
		return nil, errSubject
	}
	if w.cfg.Tenants && req.Tenant == "" {
		return nil, errNoTenant
	}
	j := &admitted{req: req, reply: msg.Reply}
	if err := j.route(id); err != nil {
		return nil, err
	}
	if err := w.pace(j, id, msg.Header); err != nil {
		return nil, err
	}
	tenant := req.Tenant // as the subject says, which the caller must know
	if err := w.applyHeaders(req, msg.Header); err != nil {
		return nil, err
	}
	limit, err := w.allowed(req, msg.Header)
	if err != nil {
		return nil, err
	}
	j.deadline = arrived.Add(limit)
	if req.ID = id; id == "" {
		req.ID = rand.Text()
	}
	j.key = activeKey(tenant, req.ID)
	if req.Resumable {
		w.keep(j, tenant)
	}
	return j, nil
}

// route decides where frames go. The subject carries the tenant only where the
// request's own subject did, since the caller must know it.
func (j *admitted) route(id string) error {
	switch {
	case !j.req.Stream:
	case streamsToReply(j.req.StreamTo, id):
		j.frames = j.reply
	case id == "":
		return llm.Errorf(llm.CodeInvalidRequest, "stream_to must be reply where no %s names the stream", subjects.HeaderRequestID)
	default:
		j.frames = subjects.Stream(j.req.Tenant, id)
	}
	return nil
}

// streamsToReply is the rule for where the frames of a streamed request go.
func streamsToReply(to llm.StreamTo, id string) bool {
	return to == llm.StreamToReply || to == "" && id == ""
}

// wantsFrames reports whether the sender of a request that was not admitted
// reads its reply subject as a stream.
func wantsFrames(msg *nats.Msg) bool {
	var glance struct {
		Stream   bool         `json:"stream"`
		StreamTo llm.StreamTo `json:"stream_to"`
	}
	_ = json.Unmarshal(msg.Data, &glance) // what cannot be read does not ask for a stream
	return glance.Stream && streamsToReply(glance.StreamTo, msg.Header.Get(subjects.HeaderRequestID))
}
