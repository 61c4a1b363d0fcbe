package chain

import (
	"cmp"
	"sync/atomic"

	"github.com/llmbus/llmbus/llm"
)

// What a call is reserved for before anything is known of its answer.
const (
	freshOutput     = 1024 // tokens of an answer without max_tokens, before any was seen
	perMessage      = 8    // tokens around a message
	perImage        = 1024 // tokens
	fewBytesByToken = 3    // of a prompt; bytesPerToken would fall short where text is no English
)

// expectation is how long the answers of a feature are. A reservation that is
// too small lets parallel requests pass a limit, so the longest of late counts.
type expectation struct{ output atomic.Int64 }

// saw takes note of an answer. An answer shorter than the longest brings that
// down by a thirty-second of the difference.
func (e *expectation) saw(output int64) {
	if was := e.output.Load(); output < was {
		output = was - (was-output)/32
	}
	e.output.Store(output) // of two at once one is lost, which matters little
}

// call is what a call of the target may use, at most as far as is known.
func (e *expectation) call(req *llm.Request, t *Target) *llm.Usage {
	output := int64(req.MaxTokens)
	if output == 0 {
		output = cmp.Or(e.output.Load(), freshOutput)
		if most := int64(t.Can.MaxOutputTokens); most > 0 {
			output = min(output, most)
		}
	}
	return &llm.Usage{InputTokens: new(promptTokens(req)), OutputTokens: new(output), Estimated: true}
}

// promptTokens is what a prompt may come to.
func promptTokens(req *llm.Request) int64 {
	bytes, images := 0, 0
	for i := range req.Messages {
		m := &req.Messages[i]
		for _, p := range m.Content {
			if bytes += len(p.Text); p.Type == llm.PartImage {
				images++
			}
		}
		for _, call := range m.ToolCalls {
			bytes += len(call.Name) + len(call.Arguments)
		}
	}
	for _, tool := range req.Tools {
		bytes += len(tool.Name) + len(tool.Description) + len(tool.Parameters)
	}
	if req.JSONSchema != nil {
		bytes += len(req.JSONSchema.Schema)
	}
	return int64((bytes+fewBytesByToken-1)/fewBytesByToken + perMessage*len(req.Messages) + perImage*images)
}
