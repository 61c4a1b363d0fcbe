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

// reader turns one answer into frames and a Response.
type reader struct {
	resp *wire.Response
	emit wire.Emit

	asm    wire.Assembly
	model  string
	reason string
	usage  usage
	calls  map[int]openCall // tool calls of a stream, by the index of their block
}

// read reads the answer in the form that its first byte shows: gateways may
// send one body where a stream was asked for.
func (r *reader) read() error {
	switch first, err := r.resp.First(); {
	case err != nil:
		return err
	case first == 0 || first == '<': // nothing, or a page of whatever stands in the path
		return r.resp.Broken(wire.ErrBroken)
	case first == '{' || first == '[':
		return r.whole()
	}
	return r.events()
}

// whole reads an answer that came in one body.
func (r *reader) whole() error {
	data, err := r.resp.ReadAll()
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil || a.Type == "error" || a.Content == nil {
		if problem, ok := wire.ReadProblem(data); ok {
			return r.resp.Classify(problem)
		}
		return r.resp.Broken(wire.ErrBroken)
	}
	r.model, r.reason, r.usage = a.Model, a.StopReason, a.Usage
	for i := range a.Content {
		if err := r.emit(r.block(&a.Content[i])); err != nil {
			return err
		}
	}
	return nil
}

// block takes in one block of a whole answer. Blocks of unknown types are
// skipped, with an empty frame: new ones appear without a new version of the API.
func (r *reader) block(b *answerBlock) llm.Frame {
	switch {
	case b.Type == blockText && b.Text != "":
		return r.asm.Text(b.Text)
	case b.Type == blockThinking && b.Thinking != "":
		return r.asm.Reasoning(b.Thinking)
	case b.Type == blockToolUse:
		return r.asm.WholeCall(b.ID, b.Name, b.Input)
	}
	return llm.Frame{}
}

// conclude judges an answer that came to its end. An empty one is a failure,
// except right after a tool's result, where it means that there is nothing to
// add.
func (r *reader) conclude(req *llm.Request) (*llm.Response, error) {
	reason, used := finish(r.reason), r.usage.neutral()
	switch {
	case reason == llm.FinishContentFilter:
		return nil, r.resp.Refusal(used)
	case r.asm.Empty() && !(reason == llm.FinishStop && afterToolResult(req)):
		return nil, r.resp.NoOutput(reason, used)
	}
	answer := r.asm.Response(reason)
	answer.Usage, answer.ModelVersion, answer.ProviderRequestID = used, r.resp.Version(r.model, req.Model), r.resp.RequestID()
	return answer, nil
}

func afterToolResult(req *llm.Request) bool {
	last := len(req.Messages) - 1
	return last >= 0 && req.Messages[last].Role == llm.RoleTool
}
