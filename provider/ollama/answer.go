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
	resp *wire.Response
	emit wire.Emit

	asm    wire.Assembly
	done   bool
	model  string
	reason string
	usage  *llm.Usage
}

// whole reads an answer that came in one body.
func (r *reader) whole() error {
	data, err := r.resp.ReadAll()
	if err != nil {
		return err
	}
	return r.take(data)
}

// lines reads a stream up to the line that says that it is the last.
func (r *reader) lines() error {
	lines := r.resp.NDJSON()
	for !r.done {
		line, err := lines.Next()
		if err != nil {
			return r.resp.Broken(err)
		}
		if err := r.take(line); err != nil {
			return err
		}
	}
	r.resp.Done()
	return nil
}

// take reads one object and emits what is in it.
func (r *reader) take(data []byte) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return r.malformed(data)
	}
	if a.Message == nil && !a.Done || isSet(a.Error) {
		return r.resp.Classify(problem(data))
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

// message emits a message's pieces. A tool call always comes whole, and two
// calls may share an index, so their order is all that tells them apart.
func (r *reader) message(m *answerMessage) error {
	if m.Thinking != "" {
		if err := r.emit(r.asm.Reasoning(m.Thinking)); err != nil {
			return err
		}
	}
	if m.Content != "" {
		if err := r.emit(r.asm.Text(m.Content)); err != nil {
			return err
		}
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if err := r.emit(r.asm.WholeCall(c.ID, c.Function.Name, c.Function.Arguments)); err != nil {
			return err
		}
	}
	return nil
}

// conclude judges an answer that came to its end.
func (r *reader) conclude(asked string) (*llm.Response, error) {
	reason := finish(r.reason)
	switch {
	case !r.done:
		return nil, r.resp.Broken(wire.ErrBroken)
	case r.asm.Empty():
		return nil, r.resp.NoOutput(reason, r.usage)
	}
	answer := r.asm.Response(reason)
	answer.Usage, answer.ModelVersion, answer.ProviderRequestID = r.usage, r.resp.Version(r.model, asked), r.resp.RequestID()
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
