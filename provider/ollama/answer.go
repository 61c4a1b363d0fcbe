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

// reader turns one answer into frames and a Response.
type reader struct {
	resp     *wire.Response
	warnings []string

	asm    wire.Assembly
	done   bool
	model  string
	reason string
	usage  *llm.Usage
}

// take reads one object and yields what is in it. more is false when the reader
// of the frames went away.
func (r *reader) take(data []byte, yield func(llm.Frame, error) bool) (more bool, err error) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return false, r.malformed(data)
	}
	if a.Message == nil && !a.Done || isSet(a.Error) {
		return false, r.resp.Classify(problem(data))
	}
	if a.Model != "" {
		r.model = a.Model
	}
	if a.Message != nil && !r.message(a.Message, yield) {
		return false, nil
	}
	if a.Done {
		r.done, r.reason = true, a.DoneReason
		if a.PromptEval != nil || a.Eval != nil {
			r.usage = &llm.Usage{InputTokens: a.PromptEval, OutputTokens: a.Eval}
		}
	}
	return true, nil
}

// malformed tells an error of a proxy, in a form of its own, from what is no
// JSON at all.
func (r *reader) malformed(data []byte) error {
	if p, ok := wire.ReadProblem(data); ok {
		return r.resp.Classify(p)
	}
	return r.resp.Broken(wire.ErrBroken)
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

// message yields a message's pieces. A tool call always comes whole, and two
// calls may share an index, so their order is all that tells them apart.
func (r *reader) message(m *answerMessage, yield func(llm.Frame, error) bool) bool {
	if m.Thinking != "" && !yield(r.asm.Reasoning(m.Thinking), nil) {
		return false
	}
	if m.Content != "" && !yield(r.asm.Text(m.Content), nil) {
		return false
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if !yield(r.asm.WholeCall(c.ID, c.Function.Name, c.Function.Arguments), nil) {
			return false
		}
	}
	return true
}

// conclude judges an answer that came to its end.
func (r *reader) conclude() (*llm.Response, error) {
	reason := finish(r.reason)
	switch {
	case !r.done:
		return nil, r.resp.Broken(wire.ErrBroken)
	case r.asm.Empty():
		return nil, r.resp.NoOutput(reason, r.usage)
	}
	answer := r.asm.Response(reason)
	answer.Usage, answer.ModelVersion = r.usage, r.model
	answer.ProviderRequestID, answer.Warnings = r.resp.RequestID(), r.warnings
	return answer, nil
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
