package openai

import "github.com/llmbus/llmbus/internal/scan"

// plain reads a chunk of one choice with a piece of its text.
func (c *chat) plain(in *scan.Cursor) bool {
	return c.version != "" && in.Object(func(key []byte) bool { // the first chunk is decoded in full
		switch string(key) {
		case "choices":
			return in.List(func(i int) bool { return i == 0 && plainChoice(in) })
		case "usage", "error", "x_groq":
			return in.Is("null")
		case "object":
			raw, ok := in.String()
			return ok && string(scan.Bare(raw)) != "error"
		case "model":
			_, ok := in.String()
			return ok
		case "id", "created", "system_fingerprint", "service_tier", "obfuscation", "provider":
			return in.Free()
		}
		return false
	})
}

func plainChoice(in *scan.Cursor) bool {
	return in.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return in.Is("0")
		case "delta":
			return plainMessage(in)
		case "finish_reason", "logprobs", "stop_reason", "native_finish_reason":
			return in.Is("null")
		}
		return false
	})
}

func plainMessage(in *scan.Cursor) bool {
	return in.Object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return in.Text()
		case "role":
			return in.Any()
		case "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content":
			return in.Is("null")
		}
		return false
	})
}

// plain reads a response.output_text.delta.
func (*responses) plain(c *scan.Cursor) bool {
	typed := false
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			typed = true
			return c.Is(`"response.output_text.delta"`)
		case "delta":
			return c.Text()
		case "output_index":
			_, ok := c.Number()
			return ok
		case "sequence_number", "item_id", "content_index", "logprobs", "obfuscation":
			return c.Free()
		}
		return false
	}) && typed
}
