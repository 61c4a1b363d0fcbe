package sim

import "encoding/json"

// openAI speaks Chat Completions.
type openAI struct{}

func (openAI) decode(body []byte) (call, error) {
	var r struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		ResponseFormat struct {
			JSONSchema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	err := json.Unmarshal(body, &r)
	c := call{model: r.Model, stream: r.Stream, input: inputTokens(body), schema: r.ResponseFormat.JSONSchema.Schema}
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Function.Name)
	}
	return c, err
}

func (openAI) failure(status int) []byte {
	kind, code := "server_error", any(nil)
	switch {
	case status == 401:
		kind, code = "invalid_request_error", "invalid_api_key"
	case status == 404:
		kind, code = "invalid_request_error", "model_not_found"
	case status == 429:
		kind, code = "requests", "rate_limit_exceeded"
	case status < 500:
		kind = "invalid_request_error"
	}
	return encode(object{"error": object{"message": simulated, "type": kind, "param": nil, "code": code}})
}

func (p openAI) whole(a answer) []byte {
	message := object{"role": "assistant", "content": a.text(), "refusal": nil}
	if name := a.tool(); name != "" {
		message["content"], message["tool_calls"] = nil, []object{p.toolCall(name)}
	}
	return encode(object{
		"id": "chatcmpl-sim", "object": "chat.completion", "created": 0, "model": a.model, "usage": p.usage(a),
		"choices": []object{{"index": 0, "message": message, "finish_reason": p.reason(a)}},
	})
}

func (openAI) streamType() string       { return "text/event-stream" }
func (openAI) event(data []byte) []byte { return sse(data) }
func (p openAI) begin(a answer) []byte {
	return p.chunk(a, object{"role": "assistant", "content": ""}, nil)
}
func (openAI) done(answer) []byte { return sse([]byte("[DONE]")) }
func (openAI) toolCall(name string) object {
	return object{"index": 0, "id": "call_sim0", "type": "function", "function": object{"name": name, "arguments": "{}"}}
}

func (p openAI) piece(a answer, part piece) []byte {
	if part.tool != "" {
		return p.chunk(a, object{"tool_calls": []object{p.toolCall(part.tool)}}, nil)
	}
	return p.chunk(a, object{"content": part.text}, nil)
}

func (p openAI) finish(a answer) []byte {
	usage := object{
		"id": "chatcmpl-sim", "object": "chat.completion.chunk", "created": 0, "model": a.model,
		"choices": []object{}, "usage": p.usage(a),
	}
	return append(p.chunk(a, object{}, p.reason(a)), sse(encode(usage))...)
}

func (openAI) chunk(a answer, delta object, reason any) []byte {
	return sse(encode(object{
		"id": "chatcmpl-sim", "object": "chat.completion.chunk", "created": 0, "model": a.model,
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
	}))
}

func (openAI) reason(a answer) string {
	if a.tool() != "" {
		return "tool_calls"
	}
	return "stop"
}

func (openAI) usage(a answer) object {
	return object{
		"prompt_tokens": a.input, "completion_tokens": a.output(), "total_tokens": a.input + a.output(),
		"prompt_tokens_details": object{"cached_tokens": 0}, "completion_tokens_details": object{"reasoning_tokens": 0},
	}
}
