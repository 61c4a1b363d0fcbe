package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// behaviour is what the mock provider does for a model. It is part of the
// model's name, so that it passes through whatever is measured:
// tokens-200_first-100ms_gap-20ms is 200 tokens, the first after 100 ms and the
// others 20 ms apart; write-8 puts eight events into one write, and key-8 is
// another model that does the same.
type behaviour struct {
	tokens     int
	first, gap time.Duration
	write      int
}

func parseBehaviour(model string) (behaviour, error) {
	b := behaviour{tokens: 200, write: 1}
	for part := range strings.SplitSeq(model, "_") {
		name, value, _ := strings.Cut(part, "-")
		var err error
		switch name {
		case "tokens":
			b.tokens, err = strconv.Atoi(value)
		case "first":
			b.first, err = time.ParseDuration(value)
		case "gap":
			b.gap, err = time.ParseDuration(value)
		case "write":
			b.write, err = strconv.Atoi(value)
		case "key": // only makes another model of it
		default:
			err = fmt.Errorf("%q is no behaviour", name)
		}
		if err != nil {
			return b, fmt.Errorf("model %q: %w", model, err)
		}
	}
	return b, nil
}

// A token of the answer, and the time at which every answer was made.
const (
	token   = " token"
	created = 1_760_000_000
)

// whole is the answer in one body, as OpenAI gives it.
func (b behaviour) whole(model string) []byte {
	return fmt.Appendf(nil, `{"id":"chatcmpl-bench","object":"chat.completion","created":%d,"model":%q,"choices":[{"index":0,`+
		`"message":{"role":"assistant","content":%q,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":250,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},`+
		`"service_tier":"default","system_fingerprint":"fp_bench"}`,
		created, model, strings.Repeat(token, b.tokens), b.tokens, 250+b.tokens)
}

// events are the server-sent events of a streamed answer: one without text, one
// for each token, the end, the usage if it is asked for, and [DONE].
func (b behaviour) events(model string, usage bool) []string {
	event := func(choices, usage string) string {
		return fmt.Sprintf(`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":%d,"model":%q,"service_tier":"default",`+
			`"system_fingerprint":"fp_bench","choices":[%s],"usage":%s}`+"\n\n", created, model, choices, usage)
	}
	choice := func(delta, finish string) string {
		return event(fmt.Sprintf(`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}`, delta, finish), "null")
	}
	list := []string{choice(`{"role":"assistant","content":"","refusal":null}`, "null")}
	for range b.tokens {
		list = append(list, choice(`{"content":"`+token+`"}`, "null"))
	}
	list = append(list, choice(`{}`, `"stop"`))
	if usage {
		list = append(list, event("", fmt.Sprintf(`{"prompt_tokens":250,"completion_tokens":%d,"total_tokens":%d}`, b.tokens, 250+b.tokens)))
	}
	return append(list, "data: [DONE]\n\n")
}
