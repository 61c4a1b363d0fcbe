package sim

import "encoding/json"

// ollama speaks /api/chat. Its last line is both the finish reason and the
// terminator, so a stream without terminator has neither.
type ollama struct{}

func (ollama) decode(body []byte) (call, error) {
	var r struct {
		Model  string `json:"model"`
		Stream *bool  `json:"stream"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Format json.RawMessage `json:"format"`
	}
	err := json.Unmarshal(body, &r)
	c := call{model: r.Model, stream: r.Stream == nil || *r.Stream, input: inputTokens(body), schema: r.Format}
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	return c, err
}

func (ollama) failure(int) []byte { return encode(object{"error": simulated}) }

func (p ollama) whole(a answer) []byte { return encode(p.last(a, p.message(a.text(), a.tool()))) }

func (ollama) streamType() string       { return "application/x-ndjson" }
func (ollama) event(data []byte) []byte { return append(data, '\n') }
func (ollama) begin(answer) []byte      { return nil }
func (ollama) finish(answer) []byte     { return nil }

func (p ollama) piece(a answer, part piece) []byte {
	return p.event(encode(object{
		"model": a.model, "created_at": "2026-01-01T00:00:00Z", "done": false, "message": p.message(part.text, part.tool),
	}))
}

func (p ollama) done(a answer) []byte { return p.event(encode(p.last(a, p.message("", "")))) }

func (ollama) message(text, tool string) object {
	m := object{"role": "assistant", "content": text}
	if tool != "" {
		m["tool_calls"] = []object{{"function": object{"name": tool, "arguments": object{}}}}
	}
	return m
}

func (ollama) last(a answer, message object) object {
	return object{
		"model": a.model, "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop", "message": message,
		"total_duration": 1, "load_duration": 1, "prompt_eval_count": a.input, "prompt_eval_duration": 1,
		"eval_count": a.output(), "eval_duration": 1,
	}
}
