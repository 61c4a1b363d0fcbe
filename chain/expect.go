package chain

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/llmbus/llmbus/llm"
)

// What a call is reserved for before anything is known of a tenant's calls.
const (
	freshOutput     = 1024 // tokens of an answer without max_tokens
	perMessage      = 8    // tokens around a message
	perImage        = 1024 // tokens
	fewBytesByToken = 3    // of a prompt; bytesPerToken would fall short where text is no English
)

// longPrompt is when what a prompt comes to beyond promptTokens is for its text,
// in tokens. With a shorter one it is mostly for what the provider adds to each,
// such as how to call tools, which says nothing of longer ones.
const longPrompt = 1024

// expectation is what a tenant's calls of a feature come to. A reservation that
// is too small lets parallel requests pass a limit, so the most of late counts.
type expectation struct {
	output recent // tokens of an answer
	added  recent // tokens of a short prompt over promptTokens
	excess recent // of a long one, in thousandths of promptTokens
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
	switch over := max(0, value(u.InputTokens)-prompt); {
	case u.Estimated:
	case prompt < longPrompt:
		e.added.saw(over)
	default:
		e.excess.saw(over * 1000 / prompt)
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
	input := prompt + max(e.added.most.Load(), prompt*e.excess.most.Load()/1000)
	return &llm.Usage{InputTokens: new(input), OutputTokens: new(output), Estimated: true}
}

// expectations are those of the tenants that have called a feature of late. One
// tenant's long answers must not use up the limits of another.
type expectations struct {
	mu       sync.Mutex
	byTenant map[string]*expectation
}

// mostExpectations is how many tenants are remembered; then all are forgotten.
const mostExpectations = 4096

func (e *expectations) of(tenant string) *expectation {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.byTenant[tenant]
	if known == nil {
		if e.byTenant == nil || len(e.byTenant) >= mostExpectations {
			e.byTenant = map[string]*expectation{}
		}
		known = &expectation{}
		e.byTenant[strings.Clone(tenant)] = known // the name may be a piece of a whole message
	}
	return known
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
