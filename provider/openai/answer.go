package openai

import (
	"cmp"
	"errors"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// usageGrace is how long the usage of a finished answer is waited for.
const usageGrace = 2 * time.Second

// answer is what both APIs gather. Each attempt has a fresh one.
type answer struct {
	resp *wire.Response
	emit func(llm.Frame) bool
	more func() bool // more of a stream is at hand, without waiting; may be nil

	wire.Assembly
	calls   calls
	finish  llm.FinishReason // empty until the answer is finished
	usage   *llm.Usage       // the last one that came
	version string           // the exact model
	over    bool             // nothing follows
	seen    bool             // any part of an answer came, however empty
	refused bool
}

func (a *answer) gathered() *answer { return a }

func (a *answer) text(piece string) error {
	if piece == "" {
		return nil
	}
	if a.more == nil {
		return a.send(a.Text(piece))
	}
	return a.piece([]byte(piece))
}

// piece takes in visible text. While more of the stream is at hand its frame
// waits, so that a reader that cannot keep up has fewer, larger ones.
func (a *answer) piece(text []byte) error {
	a.Hold(text)
	if a.more != nil && a.more() {
		return nil
	}
	return a.show()
}

// show hands out the text that no frame shows yet.
func (a *answer) show() error {
	f := a.Unshown()
	if f.Type != "" && !a.emit(f) {
		return errLeft
	}
	return nil
}

func (a *answer) reasoning(piece string) error {
	if piece == "" {
		return nil
	}
	return a.send(a.Reasoning(piece))
}

// refusal notes that the model declines. Its words are no answer, but they show
// that it is at work.
func (a *answer) refusal(piece string) error {
	if piece == "" {
		return nil
	}
	a.refused = true
	return a.send(llm.Frame{Type: llm.FrameReasoning})
}

func (a *answer) send(f llm.Frame) error {
	if err := a.show(); err != nil {
		return err
	}
	if !a.emit(f) {
		return errLeft
	}
	return nil
}

// done ends an answer whose server says that nothing follows.
func (a *answer) done() {
	a.over = true
	a.finish = cmp.Or(a.finish, llm.FinishUnknown)
}

// failed turns what a reader returned into what the provider's caller gets.
func (a *answer) failed(err error) error {
	if errors.Is(err, errLeft) {
		return errLeft
	}
	var f *provider.Failure
	if report, ok := errors.AsType[*reported](err); ok {
		f = a.resp.Classify(report.problem)
	} else if f, ok = errors.AsType[*provider.Failure](err); !ok {
		f = a.resp.Broken(err)
	}
	if a.usage != nil {
		f.Usage = a.usage
	}
	return f
}

// response judges a finished answer.
func (a *answer) response(req *llm.Request) (*llm.Response, error) {
	if err := a.calls.flush(a); err != nil {
		return nil, err
	}
	switch {
	case a.refused, a.finish == llm.FinishContentFilter:
		return nil, a.resp.Refusal(a.usage)
	case a.Empty():
		return nil, a.resp.NoOutput(a.finish, a.usage)
	}
	r := a.Response(a.finish)
	r.Model, r.ModelVersion, r.ProviderRequestID, r.Usage = req.Model, a.resp.Version(a.version, req.Model), a.resp.RequestID(), a.usage
	return r, nil
}
