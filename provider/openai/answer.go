package openai

import (
	"cmp"
	"errors"
	"time"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// usageGrace is how long the usage of a finished answer is waited for.
const usageGrace = 2 * time.Second

// answer is what both APIs gather. Each attempt has a fresh one.
type answer struct {
	*wire.Answer
	calls   calls
	finish  llm.FinishReason // empty until the answer is finished
	usage   *llm.Usage       // the last one that came
	version string           // the exact model
	seen    bool             // any part of an answer came, however empty
	refused bool
}

// reader takes the JSON of one API: a whole answer, or one event of a stream.
type reader interface {
	take(event string, data []byte) error
	plain(*scan.Cursor) bool
}

// read reads an answer and judges it.
func (p *Provider) read(in *wire.Answer, _ *llm.Request) (*llm.Response, error) {
	a := &answer{Answer: in}
	var r reader = &chat{answer: a}
	if p.cfg.API == APIResponses {
		r = &responses{answer: a}
	}
	a.Plain = r.plain
	err := a.Read(func(data []byte) error { return a.whole(r, data) }, func(e wire.Event) error { return a.event(r, e) })
	switch {
	case err == nil && a.Cut != nil && a.Cut.Outcome == llm.OutcomeCancelled: // by the caller, not by a limit
		err = a.Cut
	case err == nil:
		err = a.calls.flush(a)
	}
	if err != nil {
		return nil, a.failed(err)
	}
	return a.judge()
}

func (a *answer) whole(r reader, data []byte) error {
	if err := r.take("", data); err != nil {
		return err
	}
	if !a.seen {
		return a.broken() // JSON, but no answer
	}
	return nil
}

// event takes a piece. From the finish reason on the answer is good whatever
// follows; what usually follows is its usage.
func (a *answer) event(r reader, e wire.Event) error {
	finished := a.finish != ""
	err := r.take(e.Name, e.Data)
	switch {
	case err != nil && finished && !errors.Is(err, wire.ErrLeft):
		return wire.ErrEnd
	case err == nil && a.finish != "":
		a.Finish(usageGrace)
	}
	return err
}

// refusal notes that the model declines. Its words are no answer, but they show
// that it is at work.
func (a *answer) refusal(piece string) error {
	if piece == "" {
		return nil
	}
	a.refused = true
	return a.Send(llm.Frame{Type: llm.FrameReasoning})
}

func (a *answer) broken() error { return a.Resp.Broken(wire.ErrBroken) }

// failed adds what the answer has cost.
func (a *answer) failed(err error) error {
	if f, ok := errors.AsType[*provider.Failure](err); ok && a.usage != nil {
		f.Usage = a.usage
	}
	return err
}

// judge makes the Response of a finished answer.
func (a *answer) judge() (*llm.Response, error) {
	a.finish = cmp.Or(a.finish, llm.FinishUnknown)
	switch {
	case a.refused, a.finish == llm.FinishContentFilter:
		return nil, a.Resp.Refusal(a.usage)
	case a.Empty():
		return nil, a.Resp.NoOutput(a.finish, a.usage)
	}
	r := a.Response(a.finish)
	r.ModelVersion, r.Usage = a.version, a.usage
	return r, nil
}
