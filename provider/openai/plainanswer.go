package openai

import (
	"strconv"

	"github.com/llmbus/llmbus/internal/scan"
)

// plainAnswer reads a whole answer that is nothing but one text, as most are. ok
// is false for every other body, and for one with a field that this function
// does not know to be without meaning: those are decoded in full.
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
	n := 0
	list, err := scan.Elements(choices, func(_ int, value []byte) error {
		if n++; n > 1 {
			return errNotPlain
		}
		body.Choices = make([]choice, 1)
		ok = body.Choices[0].plain(value)
		return nil
	})
	ok = ok && list && err == nil && n == 1
	if ok && usage != nil && !isNull(usage) {
		body.Usage = new(chatUsage)
		ok = body.Usage.plain(usage)
	}
	return body, ok
}

// plain reads a choice whose message has a text and no other meaning.
func (c *choice) plain(raw []byte) bool {
	var said []byte
	if !members(raw, func(key, value []byte) bool {
		switch string(key) {
		case "index":
			return string(value) == "0"
		case "message":
			return once(&said, value)
		case "finish_reason":
			return str(&c.FinishReason, value)
		case "logprobs", "stop_reason", "token_ids", "matched_stop", "native_finish_reason":
			return true
		}
		return false
	}) || said == nil {
		return false
	}
	c.Message = new(message)
	return members(said, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			return str(&c.Message.Content.text, value)
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

// str takes a string that is not empty, a single time.
func str(into *string, value []byte) bool {
	if value[0] != '"' || *into != "" {
		return false
	}
	*into = scan.Unquote(value)
	return *into != ""
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
