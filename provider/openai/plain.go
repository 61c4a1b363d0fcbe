package openai

import (
	"errors"

	"github.com/llmbus/llmbus/internal/scan"
)

// plainDelta returns the text of a chunk that is nothing but one piece of text,
// as nearly all chunks of a stream are. ok is false for every other chunk, and for
// one with a field that this function does not know to be without meaning: those
// are decoded in full.
func plainDelta(data []byte) (text string, ok bool) {
	if scan.Check(data) != nil {
		return "", false
	}
	var choices []byte
	if !members(data, func(key, value []byte) bool {
		switch string(key) {
		case "choices":
			ok = choices == nil
			choices = value
			return ok
		case "usage", "error", "x_groq":
			return isNull(value)
		case "object":
			return string(value) != `"error"`
		case "id", "model", "created", "system_fingerprint", "service_tier", "obfuscation", "provider":
			return true
		}
		return false
	}) || choices == nil {
		return "", false
	}
	n := 0
	list, err := scan.Elements(choices, func(_ int, value []byte) error {
		if n++; n > 1 {
			return errNotPlain
		}
		text, ok = plainChoice(value)
		return nil
	})
	return text, ok && list && err == nil && n == 1
}

var errNotPlain = errors.New("not a plain chunk")

func plainChoice(choice []byte) (text string, ok bool) {
	var delta []byte
	ok = members(choice, func(key, value []byte) bool {
		switch string(key) {
		case "index":
			return string(value) == "0"
		case "delta":
			delta = value
			return true
		case "finish_reason", "logprobs", "stop_reason", "native_finish_reason":
			return isNull(value)
		}
		return false
	})
	if !ok || delta == nil {
		return "", false
	}
	ok = members(delta, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			if value[0] != '"' || text != "" {
				return false
			}
			text = scan.Unquote(value)
			return true
		case "role":
			return true
		case "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content":
			return isNull(value)
		}
		return false
	})
	return text, ok && text != ""
}

// members reports whether raw is an object whose members all please use.
func members(raw []byte, use func(key, value []byte) bool) bool {
	isObject, err := scan.Members(raw, func(key, value []byte) error {
		if !use(key, value) {
			return errNotPlain
		}
		return nil
	})
	return isObject && err == nil
}

func isNull(value []byte) bool { return string(value) == "null" }
