package bus

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// presence makes the reply subjects on which the server reports that nobody
// listens: <inbox>.<key>.first for a stream's first frame, and <inbox>.<key>.ping,
// where the key is that of the request among those under way.
type presence struct{ inbox string }

const (
	firstFrame = "first"
	anyPing    = "ping"
)

// subjects gives the reply subjects for a streamed request; empty asks for no
// report. The package comment says when one is asked for.
func (p presence) subjects(j *admitted) (first, ping string) {
	prefix := p.inbox + "." + subjects.Escape(j.key) + "."
	if !j.inbox() {
		return prefix + firstFrame, prefix + anyPing
	}
	if !p.reports(j.reply) {
		return "", ""
	}
	return "", prefix + anyPing
}

// reports tells whether the server's report on an inbox means anything.
func (presence) reports(inbox string) bool {
	return !strings.HasPrefix(inbox, "_R_") && !strings.HasPrefix(inbox, "_GR_")
}

// ping is the reply subject for one that runs under key.
func (p presence) ping(key string) string { return p.inbox + "." + key + "." + anyPing }

// onPresence takes a report and cancels the request whose caller is gone.
func (w *Worker) onPresence(msg *nats.Msg) {
	if msg.Header.Get(subjects.HeaderStatus) != subjects.StatusNoResponders {
		return
	}
	token, kind, _ := strings.Cut(strings.TrimPrefix(msg.Subject, w.presence.inbox+"."), ".")
	key, ok := subjects.Unescape(token)
	if !ok {
		return
	}
	r, ok := w.active.get(key)
	switch {
	case !ok:
	case kind == firstFrame && r.replies:
		r.unheard.Store(true)
	case !r.unheard.Load():
		w.stats.callerGone.Add(1)
		r.cancel(llm.Errorf(llm.CodeCancelled, "the caller is gone"))
	}
}

// onCancel takes a llm.cancel.<request-id>, which stops a request of no tenant
// or, with the tenant behind it, one of that tenant.
func (w *Worker) onCancel(msg *nats.Msg) {
	id, tenant, ok := subjects.ParseCancel(msg.Subject)
	key := activeKey(tenant, id)
	if ok && !w.cancelled(key) {
		time.AfterFunc(overtaking, func() { w.cancelled(key) })
	}
}

// overtaking is when to look again for a request that is not here. A cancel comes
// on another subscription than its request and can overtake it.
const overtaking = 100 * time.Millisecond

func (w *Worker) cancelled(key string) bool {
	r, ok := w.active.get(key)
	if ok {
		w.stats.cancels.Add(1)
		r.cancel(llm.ErrCancelled)
	}
	return ok
}
