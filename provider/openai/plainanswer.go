package openai

import (
	"strconv"

	"github.com/llmbus/llmbus/internal/scan"
)

// plainAnswer reads a whole answer that is nothing but one text, as most are, or
// a chunk of one. ok is false for every other body, and for one with a field that
// this function does not know to be without meaning: those are decoded in full.
func plainAnswer(data []byte) (body completion, ok bool) {
	if scan.Check(data) != nil {
		return body, false
	}
	var choices, usage []byte
	if !members(data, func(key, value []byte) bool {
		switch string(key) {
		case "choices":
			return once(&choices, value)
		case "usage":
			return once(&usage, value)
		case "object":
			return str(&body.Object, value) && body.Object != "error"
		case "model":
			return str(&body.Model, value)
		case "error", "x_groq":
			return isNull(value)
		case "id", "created", "system_fingerprint", "service_tier", "provider", "prompt_logprobs", "prompt_token_ids", "kv_transfer_params":
			return true
		}
		return false
	}) || choices == nil {
		return body, false
	}
	body.Choices = make([]choice, 0, 1)
	list, err := scan.Elements(choices, func(_ int, value []byte) error {
		var c choice
		if len(body.Choices) > 0 || !c.plain(value) {
			return errNotPlain
		}
		body.Choices = append(body.Choices, c)
		return nil
	})
	ok = list && err == nil
	if ok && usage != nil && !isNull(usage) {
		body.Usage = new(chatUsage)
		ok = body.Usage.plain(usage)
	}
	return body, ok && (len(body.Choices) > 0 || body.Usage != nil)
}

// plain reads a choice that has a text, perhaps an empty one, and no other
// meaning.
func (c *choice) plain(raw []byte) bool {
	var said []byte
	return members(raw, func(key, value []byte) bool {
		switch string(key) {
		case "index":
			return string(value) == "0"
		case "message":
			c.Message = new(message)
			return once(&said, value) && c.Message.plain(value)
		case "delta":
			c.Delta = new(message)
			return once(&said, value) && c.Delta.plain(value)
		case "finish_reason":
			return str(&c.FinishReason, value)
		case "logprobs", "stop_reason", "token_ids", "matched_stop", "native_finish_reason":
			return true
		}
		return false
	}) && said != nil
}

func (m *message) plain(raw []byte) bool {
	return members(raw, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			return str(&m.Content.text, value)
		case "role", "annotations", "audio":
			return true
		case "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content":
			return isNull(value)
		}
		return false
	})
}

// plain reads usage whose counts are whole numbers.
func (u *chatUsage) plain(raw []byte) bool {
	var cached, reasoning *int64
	ok := members(raw, func(key, value []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return count(&u.Prompt, value)
		case "completion_tokens":
			return count(&u.Completion, value)
		case "total_tokens":
			return count(&u.Total, value)
		case "prompt_tokens_details":
			return detail(&cached, "cached_tokens", value)
		case "completion_tokens_details":
			return detail(&reasoning, "reasoning_tokens", value)
		}
		return false
	})
	if cached != nil {
		u.PromptParts = &promptParts{cached}
	}
	if reasoning != nil {
		u.CompletionParts = &completionParts{reasoning}
	}
	return ok
}

// detail takes the one count that matters of a part of the usage.
func detail(into **int64, name string, raw []byte) bool {
	return isNull(raw) || *into == nil && members(raw, func(key, value []byte) bool {
		switch string(key) {
		case name:
			return count(into, value)
		case "cached_tokens", "reasoning_tokens", "audio_tokens", "text_tokens", "image_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens":
			return true
		}
		return false
	})
}

// once takes a value that may come a single time.
func once(into *[]byte, value []byte) bool {
	if *into != nil {
		return false
	}
	*into = value
	return true
}

// str takes a string, a single time; null is an empty one.
func str(into *string, value []byte) bool {
	if *into != "" {
		return false
	}
	if value[0] == '"' {
		*into = scan.Unquote(value)
		return true
	}
	return isNull(value)
}

// count takes a whole number, a single time.
func count(into **int64, value []byte) bool {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || *into != nil {
		return false
	}
	*into = &n
	return true
}
