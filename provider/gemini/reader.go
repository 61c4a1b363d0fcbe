package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// endGrace is how long the rest of an answer may take once its finish reason is
// known. Only counts may still come, and they come at once.
const endGrace = 250 * time.Millisecond

// errDone ends the reading of an answer that is whole.
var errDone = errors.New("done")

// reader turns one answer into frames and a Response.
type reader struct {
	resp *wire.Response
	emit wire.Emit

	asm    wire.Assembly
	reason string // why it finished, or why the prompt was blocked
	block  bool   // the prompt was blocked
	usage  *usage
	model  string
	id     string
	seen   bool // anything of an answer's shape
}

// whole reads an answer that came in one body.
func (r *reader) whole() error {
	data, err := r.resp.ReadAll()
	if err != nil {
		return err
	}
	return r.take(data)
}

// pieces reads a stream. There is no terminator: it ends with its bytes, or
// with whatever comes after the finish reason that is no part of an answer. An
// end without a finish reason is a failure.
func (r *reader) pieces() error {
	next, err := r.objects()
	if err != nil {
		return err
	}
	for {
		data, err := next()
		switch {
		case err == nil:
			err = r.take(data)
		case r.reason == "":
			err = r.resp.Broken(err)
		default:
			err = errDone
		}
		if errors.Is(err, errDone) {
			r.resp.Done()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// objects returns what reads the next object of a stream, in the framing that
// its first byte shows.
func (r *reader) objects() (func() ([]byte, error), error) {
	switch first, err := r.resp.First(); {
	case err != nil:
		return nil, err
	case first == '<': // a page of whatever stands in the path
		return nil, r.resp.Broken(wire.ErrBroken)
	case first == '[' || first == '{':
		return r.resp.Array().Next, nil
	}
	events := r.resp.SSE()
	return func() ([]byte, error) {
		event, err := events.Next()
		return event.Data, err
	}, nil
}

// take reads one object and emits what is in it.
func (r *reader) take(data []byte) error {
	if string(data) == "[DONE]" { // which proxies add
		return errDone
	}
	var a answer
	broken := json.Unmarshal(data, &a)
	if broken != nil || len(a.Error) > 0 && string(a.Error) != "null" {
		return r.failed(data)
	}
	r.note(&a)
	if len(a.Candidates) == 0 {
		return nil
	}
	candidate := &a.Candidates[0]
	for i := range candidate.Content.Parts {
		if err := r.emit(r.part(&candidate.Content.Parts[i])); err != nil {
			return err
		}
	}
	r.end(candidate.FinishReason)
	return nil
}

// failed classifies an error object, or the one in a list. After the finish
// reason it changes nothing.
func (r *reader) failed(data []byte) error {
	if r.reason != "" {
		return errDone
	}
	if problem, ok := wire.ReadProblem(data); ok {
		return r.resp.Classify(problem)
	}
	return r.resp.Broken(wire.ErrBroken)
}

// note keeps what is not the answer itself.
func (r *reader) note(a *answer) {
	r.seen = r.seen || a.Candidates != nil || a.Usage != nil || a.ResponseID != ""
	r.model, r.id = cmp.Or(a.ModelVersion, r.model), cmp.Or(a.ResponseID, r.id)
	if a.Usage != nil {
		if r.usage == nil {
			r.usage = new(usage)
		}
		r.usage.update(a.Usage)
	}
	if a.PromptFeedback.BlockReason != "" {
		r.block = true
		r.end(a.PromptFeedback.BlockReason)
	}
}

func (r *reader) end(reason string) {
	if reason != "" && r.reason == "" {
		r.reason = reason
		r.resp.EndWithin(endGrace)
	}
}

// part takes a piece in. A call always comes whole. Other kinds of parts are
// skipped, with an empty frame.
func (r *reader) part(p *answerPart) llm.Frame {
	switch {
	case p.FunctionCall != nil:
		return r.asm.WholeCall(p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args)
	case p.Text == "":
		return llm.Frame{}
	case p.Thought:
		return r.asm.Reasoning(p.Text)
	}
	return r.asm.Text(p.Text)
}

// conclude judges an answer that came to its end.
func (r *reader) conclude(asked string) (*llm.Response, error) {
	verdict, used := finish(r.reason), r.usage.neutral()
	switch {
	case !r.seen && !r.block:
		return nil, r.resp.Broken(wire.ErrBroken)
	case r.block, verdict.outcome == llm.OutcomeContentFiltered:
		f := r.resp.Refusal(used)
		f.Detail, f.Code = verdict.detail, known(r.reason)
		return nil, f
	case verdict.outcome == llm.OutcomeInvalidOutput, r.asm.Empty():
		f := r.resp.NoOutput(verdict.finish, used)
		f.Code = known(r.reason)
		return nil, f
	}
	answer := r.asm.Response(verdict.finish)
	answer.Usage, answer.ModelVersion = used, r.resp.Version(r.model, asked)
	answer.ProviderRequestID = cmp.Or(r.resp.RequestID(), r.resp.CleanID(r.id))
	return answer, nil
}
