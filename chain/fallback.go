package chain

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/llmbus/llmbus/llm"
)

// AnswerCache keeps answers for the cached fallback, apart for each tenant.
type AnswerCache interface {
	// Keep stores an answer for a while. It must not block on the network.
	Keep(tenant, feature, key string, answer []byte)
	// Find returns an answer that is still kept, or an error.
	Find(ctx context.Context, tenant, feature, key string) ([]byte, error)
}

// fallback gives the feature's substitute when no model served. It is the
// outermost stage but one, so that it covers switches as well as failures.
type fallback struct {
	next    llm.Completer
	feature *Feature
	cache   AnswerCache
	env     env
}

func (s *fallback) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := s.next.Complete(ctx, req)
	if err != nil && req.Job {
		return nil, err // a later try makes an answer
	}
	if err != nil {
		return s.substitute(ctx, req, err)
	}
	s.keep(req, resp)
	return resp, nil
}

func (s *fallback) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		visible := false
		for f, err := range s.next.Stream(ctx, req) {
			if err != nil {
				s.streamSubstitute(ctx, req, err, visible, yield)
				return
			}
			visible = visible || f.Visible()
			if f.Type == llm.FrameEnd {
				s.keep(req, f.Response)
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (s *fallback) streamSubstitute(ctx context.Context, req *llm.Request, failed error, visible bool, yield func(llm.Frame, error) bool) {
	if visible {
		yield(llm.Frame{}, failed)
		return
	}
	resp, err := s.substitute(ctx, req, failed)
	if err != nil {
		yield(llm.Frame{}, err)
		return
	}
	for _, f := range []llm.Frame{
		{Type: llm.FrameStart, Provider: resp.Provider, Model: resp.Model},
		{Type: llm.FrameDelta, Text: resp.Content},
		{Type: llm.FrameEnd, Response: resp},
	} {
		if f.Type == llm.FrameDelta && resp.Job != nil {
			continue // there is no text yet
		}
		f.Attempt = max(1, len(resp.Attempts))
		if !yield(f, nil) {
			return
		}
	}
}

// covered are the errors that a substitute may replace. The others say
// something about the request itself, or that nobody waits any more.
var covered = []llm.Code{llm.CodeUnavailable, llm.CodeRateLimited, llm.CodeProviderAuth, llm.CodeInvalidOutput, llm.CodeSwitchedOff, llm.CodeDeadline}

// substitute returns the first fallback that is to be had, or failed itself.
func (s *fallback) substitute(ctx context.Context, req *llm.Request, failed error) (*llm.Response, error) {
	why, ok := errors.AsType[*llm.Error](failed)
	if _, own := errors.AsType[*OverLimit](failed); own {
		return nil, failed // a tenant must see its own limit
	}
	if !ok || !slices.Contains(covered, why.Code) {
		return nil, failed
	}
	for _, mode := range s.feature.Fallback {
		resp := s.make(ctx, req, mode)
		if resp == nil {
			continue
		}
		resp.ID, resp.Metadata, resp.Warnings = req.ID, req.Metadata, req.Warnings
		resp.Fallback, resp.ServedBy = mode, llm.ServedByFallback
		if why.Code == llm.CodeSwitchedOff {
			resp.ServedBy = llm.ServedByKillSwitch
		}
		resp.Attempts, resp.Degraded = why.Attempts, why.Degraded
		for _, a := range why.Attempts {
			resp.CostUSD += a.CostUSD
		}
		return resp, nil
	}
	return nil, failed
}

// make returns the answer of one mode, or nil where it has none.
func (s *fallback) make(ctx context.Context, req *llm.Request, mode llm.FallbackMode) *llm.Response {
	switch mode {
	case llm.FallbackStatic:
		return &llm.Response{Content: s.feature.StaticText, FinishReason: llm.FinishStop}
	case llm.FallbackCached:
		return s.recall(ctx, req)
	case llm.FallbackQueued:
		if job := s.env.handOver(ctx, req); job != nil {
			return &llm.Response{Job: job}
		}
	}
	return nil
}

// cachedAnswer is what the cache keeps of a Response.
type cachedAnswer struct {
	Content      string           `json:"content"`
	ToolCalls    []llm.ToolCall   `json:"tool_calls,omitempty"`
	JSON         json.RawMessage  `json:"json,omitempty"`
	Provider     string           `json:"provider"`
	Model        string           `json:"model"`
	FinishReason llm.FinishReason `json:"finish_reason"`
}

func (s *fallback) keep(req *llm.Request, resp *llm.Response) {
	if s.cache == nil || resp.ServedBy != llm.ServedByModel || !slices.Contains(s.feature.Fallback, llm.FallbackCached) {
		return
	}
	answer, err := json.Marshal(cachedAnswer{resp.Content, resp.ToolCalls, resp.JSON, resp.Provider, resp.Model, resp.FinishReason})
	if err == nil {
		s.cache.Keep(req.Tenant, req.Feature, req.Digest(), answer)
	}
}

// recall looks for an earlier answer to the same request. It still runs when
// the request's own time is up, since the answer is one read away.
func (s *fallback) recall(ctx context.Context, req *llm.Request) *llm.Response {
	if s.cache == nil {
		return nil
	}
	raw, err := s.cache.Find(context.WithoutCancel(ctx), req.Tenant, req.Feature, req.Digest())
	var answer cachedAnswer
	if err != nil || json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	return &llm.Response{Content: answer.Content, ToolCalls: answer.ToolCalls, JSON: answer.JSON, Provider: answer.Provider,
		Model: answer.Model, FinishReason: answer.FinishReason, Stale: true}
}
