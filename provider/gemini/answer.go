package gemini

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// answer is a whole answer, or a piece of a streamed one.
type answer struct {
	Candidates []struct {
		Content struct {
			Parts []answerPart `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage        *usage          `json:"usageMetadata"`
	ModelVersion string          `json:"modelVersion"`
	ResponseID   string          `json:"responseId"`
	Error        json.RawMessage `json:"error"`
}

type answerPart struct {
	Text         string `json:"text"`
	Thought      bool   `json:"thought"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage counts tokens. Candidates leaves out thoughts; both are output. Counts
// of zero are left out by the API.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount"`
	ToolPrompt *int64 `json:"toolUsePromptTokenCount"`
	Cached     *int64 `json:"cachedContentTokenCount"`
	Candidates *int64 `json:"candidatesTokenCount"`
	Thoughts   *int64 `json:"thoughtsTokenCount"`
}

// update takes over what a later piece knows: its counts are totals.
func (u *usage) update(later *usage) {
	u.Prompt = cmp.Or(later.Prompt, u.Prompt)
	u.ToolPrompt = cmp.Or(later.ToolPrompt, u.ToolPrompt)
	u.Cached = cmp.Or(later.Cached, u.Cached)
	u.Candidates = cmp.Or(later.Candidates, u.Candidates)
	u.Thoughts = cmp.Or(later.Thoughts, u.Thoughts)
}

func (u *usage) neutral() *llm.Usage {
	if u == nil {
		return nil
	}
	n := &llm.Usage{
		OutputTokens:      new(value(u.Candidates) + value(u.Thoughts)),
		CachedInputTokens: u.Cached, ReasoningTokens: u.Thoughts,
	}
	if u.Prompt != nil {
		n.InputTokens = new(*u.Prompt + value(u.ToolPrompt))
	}
	return n
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// endGrace is how long the rest of an answer may take once its finish reason is
// known. Only counts may still come, and they come at once.
const endGrace = 250 * time.Millisecond

// errDone ends the reading of an answer that is whole.
var errDone = errors.New("done")

// reader turns one answer into frames and a Response.
type reader struct {
	resp     *wire.Response
	warnings []string

	asm    wire.Assembly
	reason string // why it finished, or why the prompt was blocked
	block  bool   // the prompt was blocked
	usage  *usage
	model  string
	id     string
	seen   bool // anything of an answer's shape
}

// take reads one object and yields what is in it. more is false when the reader
// of the frames went away.
func (r *reader) take(data []byte, yield func(llm.Frame, error) bool) (more bool, err error) {
	if string(data) == "[DONE]" { // which proxies add
		return false, errDone
	}
	var a answer
	broken := json.Unmarshal(data, &a)
	if broken != nil || len(a.Error) > 0 && string(a.Error) != "null" {
		return false, r.failed(data)
	}
	r.note(&a)
	if len(a.Candidates) == 0 {
		return true, nil
	}
	candidate := &a.Candidates[0]
	for i := range candidate.Content.Parts {
		if frame := r.part(&candidate.Content.Parts[i]); frame.Type != "" && !yield(frame, nil) {
			return false, nil
		}
	}
	r.end(candidate.FinishReason)
	return true, nil
}

// failed classifies an error object, or the one in a list. After the finish
// reason it changes nothing.
func (r *reader) failed(data []byte) error {
	if r.reason != "" {
		return errDone
	}
	if problem, ok := wire.ReadProblem(data); ok {
		return r.resp.Classify(problem)
	}
	return r.resp.Broken(wire.ErrBroken)
}

// note keeps what is not the answer itself.
func (r *reader) note(a *answer) {
	r.seen = r.seen || a.Candidates != nil || a.Usage != nil || a.ResponseID != ""
	r.model, r.id = cmp.Or(a.ModelVersion, r.model), cmp.Or(a.ResponseID, r.id)
	if a.Usage != nil {
		if r.usage == nil {
			r.usage = new(usage)
		}
		r.usage.update(a.Usage)
	}
	if a.PromptFeedback.BlockReason != "" {
		r.block = true
		r.end(a.PromptFeedback.BlockReason)
	}
}

func (r *reader) end(reason string) {
	if reason != "" && r.reason == "" {
		r.reason = reason
		r.resp.EndWithin(endGrace)
	}
}

// part takes a piece in. A call always comes whole. Other kinds of parts are
// skipped, with an empty frame.
func (r *reader) part(p *answerPart) llm.Frame {
	switch {
	case p.FunctionCall != nil:
		return r.asm.WholeCall(p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args)
	case p.Text == "":
		return llm.Frame{}
	case p.Thought:
		return r.asm.Reasoning(p.Text)
	}
	return r.asm.Text(p.Text)
}

// conclude judges an answer that came to its end.
func (r *reader) conclude() (*llm.Response, error) {
	verdict, used := finish(r.reason), r.usage.neutral()
	switch {
	case !r.seen && !r.block:
		return nil, r.resp.Broken(wire.ErrBroken)
	case r.block, verdict.outcome == llm.OutcomeContentFiltered:
		f := r.resp.Refusal(used)
		f.Detail, f.Code = verdict.detail, wire.CleanCode(r.reason)
		return nil, f
	case verdict.outcome == llm.OutcomeInvalidOutput, r.asm.Empty():
		f := r.resp.NoOutput(verdict.finish, used)
		f.Code = wire.CleanCode(r.reason)
		return nil, f
	}
	answer := r.asm.Response(verdict.finish)
	answer.Usage, answer.ModelVersion = used, r.model
	answer.ProviderRequestID, answer.Warnings = cmp.Or(r.resp.RequestID(), wire.CleanID(r.id)), r.warnings
	return answer, nil
}

// verdict is what a finish reason means.
type verdict struct {
	outcome llm.Outcome
	detail  provider.Detail
	finish  llm.FinishReason
}

func finish(reason string) verdict {
	switch reason {
	case "":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishUnknown}
	case "STOP":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishStop}
	case "MAX_TOKENS":
		return verdict{outcome: llm.OutcomeOK, finish: llm.FinishLength}
	case "SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "MODEL_ARMOR":
		return verdict{outcome: llm.OutcomeContentFiltered}
	case "RECITATION", "IMAGE_RECITATION":
		return verdict{outcome: llm.OutcomeContentFiltered, detail: provider.DetailRecitation}
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		return verdict{outcome: llm.OutcomeInvalidOutput}
	}
	return verdict{outcome: llm.OutcomeOK, finish: llm.FinishOther}
}
