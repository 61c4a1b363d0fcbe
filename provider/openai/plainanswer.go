package openai

import "github.com/llmbus/llmbus/internal/scan"

// plainAnswer reads a whole answer that is nothing but one text, as most are, or
// a chunk of one. ok is false for every other body, and for one with a field that
// this function does not know to be without meaning: those are decoded in full.
func plainAnswer(data []byte) (body completion, ok bool) {
	ok = scan.Read(data, body.plain)
	return body, ok && (len(body.Choices) > 0 || body.Usage != nil)
}

func (b *completion) plain(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			if b.Choices != nil {
				return false
			}
			b.Choices = make([]choice, 0, 1)
			return c.List(func(i int) bool {
				b.Choices = b.Choices[:1]
				return i == 0 && b.Choices[0].plain(c)
			})
		case "usage":
			if b.Usage != nil || c.Is("null") {
				return b.Usage == nil
			}
			b.Usage = new(chatUsage)
			return b.Usage.plain(c)
		case "object":
			return str(&b.Object, c) && b.Object != "error"
		case "model":
			return str(&b.Model, c)
		case "error", "x_groq":
			return c.Is("null")
		case "id", "created", "system_fingerprint", "service_tier", "provider", "prompt_logprobs", "prompt_token_ids", "kv_transfer_params":
			return c.Any()
		}
		return false
	}) && b.Choices != nil
}

// plain reads a choice that has a text, perhaps an empty one, and no other
// meaning.
func (ch *choice) plain(c *scan.Cursor) bool {
	said := func(into **message) bool {
		if ch.Message != nil || ch.Delta != nil {
			return false
		}
		*into = new(message)
		return (*into).plain(c)
	}
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return c.Is("0")
		case "message":
			return said(&ch.Message)
		case "delta":
			return said(&ch.Delta)
		case "finish_reason":
			return str(&ch.FinishReason, c)
		case "logprobs", "stop_reason", "token_ids", "matched_stop", "native_finish_reason":
			return c.Any()
		}
		return false
	}) && (ch.Message != nil || ch.Delta != nil)
}

func (m *message) plain(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return str(&m.Content.text, c)
		case "role", "annotations", "audio":
			return c.Any()
		case "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content":
			return c.Is("null")
		}
		return false
	})
}

// plain reads usage whose counts are whole numbers.
func (u *chatUsage) plain(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return count(&u.Prompt, c)
		case "completion_tokens":
			return count(&u.Completion, c)
		case "total_tokens":
			return count(&u.Total, c)
		case "prompt_tokens_details":
			if u.PromptParts != nil || c.Is("null") {
				return u.PromptParts == nil
			}
			u.PromptParts = new(promptParts)
			return detail(&u.PromptParts.Cached, "cached_tokens", c)
		case "completion_tokens_details":
			if u.CompletionParts != nil || c.Is("null") {
				return u.CompletionParts == nil
			}
			u.CompletionParts = new(completionParts)
			return detail(&u.CompletionParts.Reasoning, "reasoning_tokens", c)
		}
		return false
	})
}

// detail reads the one count that matters of a part of the usage.
func detail(into **int64, name string, c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case name:
			return count(into, c)
		case "cached_tokens", "reasoning_tokens", "audio_tokens", "text_tokens", "image_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens":
			return c.Any()
		}
		return false
	})
}

// str reads a string, a single time; null is an empty one.
func str(into *string, c *scan.Cursor) bool {
	raw, ok := c.String()
	switch {
	case *into != "":
		return false
	case ok:
		*into = scan.Unquote(raw)
		return true
	}
	return c.Is("null")
}

// count reads a whole number, a single time.
func count(into **int64, c *scan.Cursor) bool {
	n, ok := c.Number()
	if !ok || *into != nil {
		return false
	}
	*into = &n
	return true
}
