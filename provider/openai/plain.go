package openai

import (
	"bytes"
	"errors"

	"github.com/llmbus/llmbus/internal/scan"
)

// pattern is the last plain chunk of a stream without its text. Servers make
// chunks from one form, so that the next one mostly differs in the text alone.
type pattern struct{ head, tail []byte } // to the quote before the text, and from the quote after it

// text returns the text of a plain chunk as the JSON string that it is, which
// lies within data. ok is false for what plainDelta says no to.
func (p *pattern) text(data []byte) (text []byte, ok bool) {
	if head, end := len(p.head), len(data)-len(p.tail); 0 < head && head < end && bytes.HasPrefix(data, p.head) && bytes.HasSuffix(data, p.tail) {
		if text = data[head-1 : end+1]; scan.IsString(text) {
			return text, true
		}
	}
	if text, ok = plainDelta(data); ok {
		from := cap(data) - cap(text) // as a part of data it ends where data does
		p.head, p.tail = append(p.head[:0], data[:from+1]...), append(p.tail[:0], data[from+len(text)-1:]...)
	}
	return text, ok
}

// plainDelta returns the text, as it stands there, of a chunk that is nothing
// but one piece of text, as nearly all chunks of a stream are. ok is false for
// every other chunk, and for one with a field that this function does not know to
// be without meaning: those are decoded in full.
func plainDelta(data []byte) (text []byte, ok bool) {
	if scan.Check(data) != nil {
		return nil, false
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
		return nil, false
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

func plainChoice(choice []byte) (text []byte, ok bool) {
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
		return nil, false
	}
	ok = members(delta, func(key, value []byte) bool {
		switch string(key) {
		case "content":
			if value[0] != '"' || text != nil || len(value) == len(`""`) {
				return false
			}
			text = value
			return true
		case "role":
			return true
		case "refusal", "tool_calls", "function_call", "reasoning", "reasoning_content":
			return isNull(value)
		}
		return false
	})
	return text, ok && text != nil
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
