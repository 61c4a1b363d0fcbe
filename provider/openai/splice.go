package openai

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/llmbus/llmbus/llm"
)

// splice appends the body to buf. It puts the messages in front of the other members of the body. A long
// prompt is copied once and not encoded, and neither is the rest where it holds
// but numbers and a name.
func (r *chatRequest) splice(buf []byte, messages json.RawMessage) ([]byte, error) {
	const key, room = `{"messages":`, 256
	var rest []byte
	if !r.plain() {
		var err error
		if rest, err = encode(r); err != nil {
			return nil, err
		}
	}
	body := slices.Grow(buf, len(key)+len(messages)+max(len(rest), room))
	body = append(append(body, key...), messages...)
	if rest != nil {
		return append(append(body, ','), rest[1:]...), nil // the model is always there
	}
	return append(r.appendPlain(body), '}'), nil
}

// plain reports whether appendPlain writes all of the request but its messages.
func (r *chatRequest) plain() bool {
	return len(r.Tools) == 0 && r.ToolChoice == nil && r.ParallelToolCalls == nil && r.ResponseFormat == nil && len(r.Stop) == 0
}

// appendPlain writes the members that are there, each after a comma.
func (r *chatRequest) appendPlain(dst []byte) []byte {
	dst = llm.AppendString(append(dst, `,"model":`...), r.Model)
	dst = appendInt(dst, `,"max_tokens":`, int64(r.MaxTokens))
	dst = appendInt(dst, `,"max_completion_tokens":`, int64(r.MaxCompletionTokens))
	dst = appendFloat(dst, `,"temperature":`, r.Temperature)
	dst = appendFloat(dst, `,"top_p":`, r.TopP)
	if r.Seed != nil {
		dst = strconv.AppendInt(append(dst, `,"seed":`...), *r.Seed, 10)
	}
	if r.RandomSeed != nil {
		dst = strconv.AppendInt(append(dst, `,"random_seed":`...), *r.RandomSeed, 10)
	}
	if r.Stream {
		dst = append(dst, `,"stream":true`...)
	}
	if r.StreamOptions != nil {
		dst = strconv.AppendBool(append(dst, `,"stream_options":{"include_usage":`...), r.StreamOptions.IncludeUsage)
		dst = append(dst, '}')
	}
	return dst
}

func appendInt(dst []byte, key string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, key...), n, 10)
}

func appendFloat(dst []byte, key string, f *float64) []byte {
	if f == nil {
		return dst
	}
	return strconv.AppendFloat(append(dst, key...), *f, 'f', -1, 64)
}
