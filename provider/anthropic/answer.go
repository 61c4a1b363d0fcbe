package anthropic

import (
	"encoding/json"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// answer is a whole message, or the beginning of a streamed one.
type answer struct {
	Type       string        `json:"type"`
	Model      string        `json:"model"`
	Content    []answerBlock `json:"content"`
	StopReason string        `json:"stop_reason"`
	Usage      usage         `json:"usage"`
}

type answerBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
}

// usage counts tokens. InputTokens leaves out what the cache took part in.
type usage struct {
	InputTokens   *int64 `json:"input_tokens"`
	OutputTokens  *int64 `json:"output_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	OutputDetails struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update takes over what a later event knows: its counts are totals.
func (u *usage) update(later *usage) {
	for _, count := range []struct{ to, from **int64 }{
		{&u.InputTokens, &later.InputTokens}, {&u.OutputTokens, &later.OutputTokens},
		{&u.CacheRead, &later.CacheRead}, {&u.CacheCreation, &later.CacheCreation},
		{&u.OutputDetails.Thinking, &later.OutputDetails.Thinking},
	} {
		if *count.from != nil {
			*count.to = *count.from
		}
	}
}

// neutral adds the cached tokens to the input, where everybody else counts
// them. It is nil when nothing is known.
func (u *usage) neutral() *llm.Usage {
	if u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	n := &llm.Usage{
		OutputTokens: u.OutputTokens, CachedInputTokens: u.CacheRead, CacheWriteTokens: u.CacheCreation,
		ReasoningTokens: u.OutputDetails.Thinking,
	}
	if u.InputTokens != nil {
		n.InputTokens = new(*u.InputTokens + value(u.CacheRead) + value(u.CacheCreation))
	}
	return n
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// finish translates a stop reason. pause_turn belongs to tools that run at the
// provider, which are never offered.
func finish(reason string) llm.FinishReason {
	switch reason {
	case "":
		return llm.FinishUnknown
	case "end_turn", "stop_sequence":
		return llm.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "tool_use":
		return llm.FinishToolCalls
	case "refusal":
		return llm.FinishContentFilter
	}
	return llm.FinishOther
}

// reader reads one answer.
type reader struct {
	*wire.Answer
	model  string
	reason string
	usage  usage
	calls  map[int]openCall // tool calls of a stream, by the index of their block
}

// read reads an answer and judges it. An empty one is a failure, except right
// after a tool's result, where it means that there is nothing to add.
func read(a *wire.Answer, req *llm.Request) (*llm.Response, error) {
	a.Plain = plain
	r := &reader{Answer: a}
	if err := r.Read(r.whole, r.event); err != nil {
		return nil, err
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	reason, used := finish(r.reason), r.usage.neutral()
	switch {
	case reason == llm.FinishContentFilter:
		return nil, r.Resp.Refusal(used)
	case r.Empty() && !(reason == llm.FinishStop && afterToolResult(req)):
		return nil, r.Resp.NoOutput(reason, used)
	}
	answer := r.Response(reason)
	answer.Usage, answer.ModelVersion = used, r.model
	return answer, nil
}

func afterToolResult(req *llm.Request) bool {
	last := len(req.Messages) - 1
	return last >= 0 && req.Messages[last].Role == llm.RoleTool
}

// whole takes an answer that came in one body.
func (r *reader) whole(data []byte) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil || a.Type == "error" || a.Content == nil {
		if problem, ok := wire.ReadProblem(data); ok {
			return r.Resp.Classify(problem)
		}
		return r.Resp.Broken(wire.ErrBroken)
	}
	r.model, r.reason, r.usage = a.Model, a.StopReason, a.Usage
	for i := range a.Content {
		if err := r.block(&a.Content[i]); err != nil {
			return err
		}
	}
	return nil
}

// block takes one block of a whole answer. Blocks of unknown types are skipped:
// new ones appear without a new version of the API.
func (r *reader) block(b *answerBlock) error {
	if b.Type == blockToolUse {
		return r.Send(r.WholeCall(b.ID, b.Name, b.Input))
	}
	return r.words(b)
}

func (r *reader) words(b *answerBlock) error {
	switch b.Type {
	case blockText:
		r.Say(b.Text)
	case blockThinking:
		return r.Think(b.Thinking)
	}
	return nil
}
