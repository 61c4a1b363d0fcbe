package chain

import (
	"cmp"
	"sync/atomic"

	"github.com/llmbus/llmbus/llm"
)

// What a call is reserved for before anything is known of a feature.
const (
	freshOutput     = 1024 // tokens of an answer without max_tokens
	perMessage      = 8    // tokens around a message
	perImage        = 1024 // tokens
	fewBytesByToken = 3    // of a prompt; bytesPerToken would fall short where text is no English
)

// expectation is what the calls of a feature come to. A reservation that is too
// small lets parallel requests pass a limit, so the most of late counts.
type expectation struct {
	output recent // tokens of an answer
	excess recent // of a prompt over promptTokens, in thousandths of that
}

// recent is the most of late.
type recent struct{ most atomic.Int64 }

// saw takes note of a number. A lesser one brings the most down by a
// thirty-second of the difference. Of two at once one is lost, which matters
// little.
func (r *recent) saw(n int64) {
	if was := r.most.Load(); n < was {
		n = was - (was-n)/32
	}
	r.most.Store(n)
}

// saw takes note of a call whose prompt was expected to be of so many tokens.
func (e *expectation) saw(prompt int64, u *llm.Usage) {
	e.output.saw(value(u.OutputTokens))
	if !u.Estimated && prompt > 0 {
		e.excess.saw(max(0, (value(u.InputTokens)-prompt)*1000/prompt))
	}
}

// call is what a call of the target may use, as far as is known.
func (e *expectation) call(req *llm.Request, t *Target, prompt int64) *llm.Usage {
	output := int64(req.MaxTokens)
	if output == 0 {
		output = cmp.Or(e.output.most.Load(), freshOutput)
		if most := int64(t.Can.MaxOutputTokens); most > 0 {
			output = min(output, most)
		}
	}
	input := prompt + prompt*e.excess.most.Load()/1000
	return &llm.Usage{InputTokens: new(input), OutputTokens: new(output), Estimated: true}
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
