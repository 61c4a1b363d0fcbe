package ollama

import (
	"encoding/json"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// answer is a line of a stream, or a whole answer.
type answer struct {
	Model      string          `json:"model"`
	Message    *answerMessage  `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	PromptEval *int64          `json:"prompt_eval_count"` // left out when it is 0, as with a cached prompt
	Eval       *int64          `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

type answerMessage struct {
	Content   string `json:"content"`
	Thinking  string `json:"thinking"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// reader reads one answer.
type reader struct {
	*wire.Answer
	done   bool
	model  string
	reason string
	usage  *llm.Usage
}

// read reads an answer and judges it.
func read(a *wire.Answer, _ *llm.Request) (*llm.Response, error) {
	r := &reader{Answer: a}
	a.Plain = r.plain
	if err := r.read(); err != nil {
		return nil, err
	}
	reason := finish(r.reason)
	switch {
	case !r.done:
		return nil, r.Resp.Broken(wire.ErrBroken)
	case r.Empty():
		return nil, r.Resp.NoOutput(reason, r.usage)
	}
	answer := r.Response(reason)
	answer.Usage, answer.ModelVersion = r.usage, r.model
	return answer, nil
}

// read reads one body, or a stream up to the line that says that it is the last.
func (r *reader) read() error {
	if !r.Stream {
		return r.Whole(r.take)
	}
	return r.Events(r.Resp.NDJSON(), func(line wire.Event) error {
		if err := r.take(line.Data); err != nil || !r.done {
			return err
		}
		return wire.ErrEnd
	})
}

// take takes one object.
func (r *reader) take(data []byte) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return r.malformed(data)
	}
	if a.Message == nil && !a.Done || isSet(a.Error) {
		return r.Resp.Classify(problem(data))
	}
	if a.Model != "" {
		r.model = a.Model
	}
	if a.Done {
		r.done, r.reason = true, a.DoneReason
		if a.PromptEval != nil || a.Eval != nil {
			r.usage = &llm.Usage{InputTokens: a.PromptEval, OutputTokens: a.Eval}
		}
	}
	if a.Message == nil {
		return nil
	}
	return r.message(a.Message)
}

// malformed tells an error of a proxy, in a form of its own, from what is no
// JSON at all.
func (r *reader) malformed(data []byte) error {
	if p, ok := wire.ReadProblem(data); ok {
		return r.Resp.Classify(p)
	}
	return r.Resp.Broken(wire.ErrBroken)
}

func isSet(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// problem reads an error object. Some versions put the text itself where its
// name should be.
func problem(data []byte) wire.Problem {
	if p, ok := wire.ReadProblem(data); ok {
		return p
	}
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(data, &keys)
	for key := range keys {
		if len(keys) == 1 {
			return wire.ProblemText(key)
		}
	}
	return wire.ProblemText("")
}

// message takes a message's pieces. A tool call always comes whole, and two
// calls may share an index, so their order is all that tells them apart.
func (r *reader) message(m *answerMessage) error {
	if err := r.Think(m.Thinking); err != nil {
		return err
	}
	r.Say(m.Content)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if err := r.Send(r.WholeCall(c.ID, c.Function.Name, c.Function.Arguments)); err != nil {
			return err
		}
	}
	return nil
}

// finish translates a done reason. After load and unload there is no answer.
func finish(reason string) llm.FinishReason {
	switch reason {
	case "":
		return llm.FinishUnknown
	case "stop":
		return llm.FinishStop
	case "length":
		return llm.FinishLength
	}
	return llm.FinishOther
}
