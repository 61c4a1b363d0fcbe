package bus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Replay gives back the frames that were published on a subjects.Replay.
type Replay interface {
	// Read yields the payloads that are kept on a subject, oldest first, and none
	// if nothing is kept. It may be a moment behind. An error is the last thing
	// yielded. It may be called by many goroutines at once.
	Read(ctx context.Context, subject string) iter.Seq2[[]byte, error]
}

const (
	lookPatience = time.Second      // for one reading of what is kept
	originSilent = 3 * maxPingEvery // a worker that says nothing for longer is dead
)

// keep has the frames of a resumable answer kept.
func (w *Worker) keep(j *admitted, tenant string) {
	if w.cfg.Replay == nil {
		j.req.Warnings = append(j.req.Warnings, "resumable was ignored: this fleet keeps no frames")
		return
	}
	j.capture = subjects.Replay(tenant, j.req.ID)
}

// unused refuses a resumable request whose id has had an answer, or a part of
// one, that is still kept: a reader who comes back would get a piece of each.
// What ended before any text may be begun anew. Frames of the last milliseconds
// may not be kept yet and are not seen.
func (w *Worker) unused(ctx context.Context, j *admitted) error {
	if j.capture == "" {
		return nil
	}
	return w.unusedCapture(ctx, j)
}

func (w *Worker) unusedCapture(ctx context.Context, j *admitted) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for data, err := range w.cfg.Replay.Read(ctx, j.capture) {
		if err != nil { // the answer matters more than its readers to come
			w.log.Warn("frames may not be kept: JetStream does not answer", "id", j.req.ID, "error", err)
			return nil
		}
		if f, err := glance(data); err == nil && f.commits() {
			return llm.Errorf(llm.CodeInvalidRequest, "frames of a request with this id are kept; resume it, or give this one an id of its own")
		}
	}
	return nil
}

// glimpse is what a relay must know of a frame.
type glimpse struct {
	Seq  uint64        `json:"seq"`
	Type llm.FrameType `json:"type"`
	data []byte
}

func glance(data []byte) (glimpse, error) {
	f := glimpse{data: data}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("a kept message is no frame: %w", err)
	}
	return f, nil
}

func (f *glimpse) terminal() bool { return f.Type == llm.FrameEnd || f.Type == llm.FrameError }

func (f *glimpse) commits() bool {
	return f.Type == llm.FrameDelta || f.Type == llm.FrameToolCall || f.Type == llm.FrameEnd
}

// readers counts the relays under way.
type readers struct{ n atomic.Int64 }

// serveReaders subscribes to readers that come back. A worker that is full and
// has left the queue group of requests still serves them.
func (w *Worker) serveReaders(work context.Context) error {
	if w.cfg.Replay == nil {
		return nil
	}
	wanted := []string{subjects.Resumes}
	if w.cfg.Tenants {
		wanted = append(wanted, subjects.TenantResumes)
	}
	for _, subject := range wanted {
		m, err := w.member(subject, func(msg *nats.Msg) { w.onResume(work, msg) })
		if err != nil {
			w.leaveReaders()
			return err
		}
		w.resumes = append(w.resumes, m)
	}
	return nil
}

func (w *Worker) leaveReaders() {
	for _, m := range w.resumes {
		_ = m.Drain() // fails only when the subscription is gone already
	}
	w.resumes = nil
}

// onResume takes a llm.resume.<request-id>.
func (w *Worker) onResume(ctx context.Context, msg *nats.Msg) {
	w.stats.resumed.Add(1)
	if msg.Reply == "" || !w.mayAnswer(msg) {
		return
	}
	if w.readers.n.Add(1) > int64(w.cfg.Readers) {
		w.readers.n.Add(-1)
		busy := llm.Errorf(llm.CodeBusy, "the worker has %d readers", w.cfg.Readers)
		busy.RetryAfterMS = w.cfg.BusyAfter.Milliseconds()
		w.endRelay(msg.Reply, busy)
		return
	}
	w.running.Go(func() {
		defer w.readers.n.Add(-1)
		w.relay(ctx, msg)
	})
}

// relay serves one reader until the last frame.
func (w *Worker) relay(ctx context.Context, msg *nats.Msg) {
	r, err := w.newRelay(msg)
	if err == nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		reading := &running{cancel: cancel}
		w.active.add(r.key, reading)
		defer w.active.remove(r.key, reading)
		err = r.run(ctx)
	}
	switch e, ok := errors.AsType[*llm.Error](err); {
	case err == nil, ctx.Err() != nil:
	case ok:
		w.endRelay(msg.Reply, e)
		return
	default:
		w.log.Warn("a reader was not served", "error", err)
		w.endRelay(msg.Reply, llm.Errorf(llm.CodeUnavailable, "the kept frames cannot be read just now"))
		return
	}
	// After the last frame, or cut off: a reader without that frame asks again.
	_ = w.cfg.Conn.Publish(msg.Reply, nil) // fails only with the connection
}

// endRelay tells a reader why it gets no more: one error that is no frame, and
// the empty message.
func (w *Worker) endRelay(reply string, e *llm.Error) {
	if err := errors.Join(w.respond(reply, "", nil, e), w.cfg.Conn.Publish(reply, nil)); err != nil {
		w.log.Warn("a reader was not answered", "error", err)
	}
}

func (w *Worker) newRelay(msg *nats.Msg) (*relay, error) {
	id, tenant, ok := subjects.ParseResume(msg.Subject)
	switch {
	case !ok || !subjects.ValidRequestID(id):
		return nil, llm.Errorf(llm.CodeInvalidRequest, "the subject must be that of a request id")
	case w.cfg.Tenants && tenant == "":
		return nil, errNoTenant
	}
	from := uint64(1)
	if text := msg.Header.Get(subjects.HeaderFromSeq); text != "" {
		var err error
		if from, err = strconv.ParseUint(text, 10, 64); err != nil || from == 0 {
			return nil, llm.Errorf(llm.CodeInvalidRequest, "%s must be a frame's number, from 1 on", subjects.HeaderFromSeq)
		}
	}
	r := &relay{nc: w.cfg.Conn, replay: w.cfg.Replay, source: subjects.Replay(tenant, id), to: msg.Reply,
		want: from, committed: from > 1, key: rand.Text()}
	if p := w.presence; p.reports(msg.Reply) {
		r.presence = p.ping(r.key)
	}
	return r, nil
}
