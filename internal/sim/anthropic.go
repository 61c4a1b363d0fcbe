package sim

import "encoding/json"

// anthropic speaks Messages.
type anthropic struct{}

func (anthropic) decode(body []byte) (call, error) {
	var r struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
		OutputConfig struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	err := json.Unmarshal(body, &r)
	c := call{model: r.Model, stream: r.Stream, input: inputTokens(body), schema: r.OutputConfig.Format.Schema}
	for _, t := range r.Tools {
		c.tools = append(c.tools, t.Name)
	}
	return c, err
}

func (anthropic) failure(status int) []byte {
	kind := "api_error"
	switch {
	case status == 401:
		kind = "authentication_error"
	case status == 402:
		kind = "billing_error"
	case status == 403:
		kind = "permission_error"
	case status == 404:
		kind = "not_found_error"
	case status == 413:
		kind = "request_too_large"
	case status == 429:
		kind = "rate_limit_error"
	case status == 504:
		kind = "timeout_error"
	case status == 529:
		kind = "overloaded_error"
	case status < 500:
		kind = "invalid_request_error"
	}
	return encode(object{"type": "error", "error": object{"type": kind, "message": simulated}, "request_id": "req_sim"})
}

func (p anthropic) whole(a answer) []byte {
	content := []object{}
	switch {
	case a.tool() != "":
		content = append(content, p.toolUse(a.tool()))
	case a.text() != "":
		content = append(content, object{"type": "text", "text": a.text()})
	}
	return encode(p.message(a, content, p.reason(a), a.output()))
}

func (anthropic) streamType() string { return "text/event-stream" }

// event names what it frames by the type in it, as the API does.
func (anthropic) event(data []byte) []byte {
	var named struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &named) != nil {
		named.Type = "content_block_delta"
	}
	return namedSSE(named.Type, data)
}

func (p anthropic) begin(a answer) []byte {
	out := p.event(encode(object{"type": "message_start", "message": p.message(a, []object{}, nil, 1)}))
	if len(a.pieces) == 0 {
		return out
	}
	block := object{"type": "text", "text": ""}
	if a.tool() != "" {
		block = p.toolUse(a.tool())
	}
	out = append(out, p.event(encode(object{"type": "content_block_start", "index": 0, "content_block": block}))...)
	return append(out, p.event([]byte(`{"type":"ping"}`))...)
}

func (p anthropic) piece(_ answer, part piece) []byte {
	delta := object{"type": "text_delta", "text": part.text}
	if part.tool != "" {
		delta = object{"type": "input_json_delta", "partial_json": "{}"}
	}
	return p.event(encode(object{"type": "content_block_delta", "index": 0, "delta": delta}))
}

func (p anthropic) finish(a answer) []byte {
	var out []byte
	if len(a.pieces) > 0 {
		out = p.event([]byte(`{"type":"content_block_stop","index":0}`))
	}
	return append(out, p.event(encode(object{
		"type": "message_delta", "delta": object{"stop_reason": p.reason(a), "stop_sequence": nil},
		"usage": object{"output_tokens": a.output()},
	}))...)
}

func (p anthropic) done(answer) []byte { return p.event([]byte(`{"type":"message_stop"}`)) }

func (anthropic) toolUse(name string) object {
	return object{"type": "tool_use", "id": "toolu_sim0", "name": name, "input": object{}}
}

func (anthropic) reason(a answer) string {
	if a.tool() != "" {
		return "tool_use"
	}
	return "end_turn"
}

func (anthropic) message(a answer, content []object, reason any, output int) object {
	return object{
		"id": "msg_sim", "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": object{
			"input_tokens": a.input, "output_tokens": output,
			"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
		},
	}
}
