package gemini

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// endGrace is how long the rest of an answer may take once its finish reason is
// known. Only counts may still come, and they come at once.
const endGrace = 250 * time.Millisecond

// reader reads one answer.
type reader struct {
	*wire.Answer
	reason string // why it finished, or why the prompt was blocked
	block  bool   // the prompt was blocked
	usage  *usage
	model  string
	id     string
	seen   bool // anything of an answer's shape
}

// read reads an answer and judges it.
func read(a *wire.Answer, _ *llm.Request) (*llm.Response, error) {
	r := &reader{Answer: a}
	a.Plain = r.plain
	if err := r.read(); err != nil {
		return nil, err
	}
	verdict, used := finish(r.reason), r.usage.neutral()
	switch {
	case !r.seen && !r.block:
		return nil, r.Resp.Broken(wire.ErrBroken)
	case r.block, verdict.outcome == llm.OutcomeContentFiltered:
		f := r.Resp.Refusal(used)
		f.Detail, f.Code = verdict.detail, known(r.reason)
		return nil, f
	case verdict.outcome == llm.OutcomeInvalidOutput, r.Empty():
		f := r.Resp.NoOutput(verdict.finish, used)
		f.Code = known(r.reason)
		return nil, f
	}
	answer := r.Response(verdict.finish)
	answer.Usage, answer.ModelVersion, answer.ProviderRequestID = used, r.model, r.id
	return answer, nil
}

// read reads one body or a stream, in the framing that its first byte shows. A
// stream has no terminator: it ends with its bytes, or with whatever comes after
// the finish reason that is no part of an answer. An end without a finish reason
// is a failure.
func (r *reader) read() error {
	if !r.Stream {
		return r.Whole(r.take)
	}
	event := func(e wire.Event) error { return r.take(e.Data) }
	switch first, err := r.Resp.First(); {
	case err != nil:
		return err
	case first == '<': // a page of whatever stands in the path
		return r.Resp.Broken(wire.ErrBroken)
	case first == '[' || first == '{':
		return r.Events(r.Resp.Array(), event)
	}
	return r.Events(r.Resp.SSE(), event)
}

// take takes one object.
func (r *reader) take(data []byte) error {
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
		if err := r.part(&candidate.Content.Parts[i]); err != nil {
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
		return wire.ErrEnd
	}
	if problem, ok := wire.ReadProblem(data); ok {
		return r.Resp.Classify(problem)
	}
	return r.Resp.Broken(wire.ErrBroken)
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
		r.Finish(endGrace)
	}
}

// part takes a piece. A call always comes whole. Other kinds of parts are
// skipped.
func (r *reader) part(p *answerPart) error {
	switch {
	case p.FunctionCall != nil:
		return r.Send(r.WholeCall(p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args))
	case p.Thought:
		return r.Think(p.Text)
	}
	r.Say(p.Text)
	return nil
}
