package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// observed is the outermost stage: it writes the one log line of a request and
// tells the observer of its start and end.
type observed struct {
	next  llm.Completer
	env   env
	audit *auditing // nil: none
}

func (s *observed) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	ctx, began := s.start(ctx, req)
	ctx, notes := s.audit.begin(ctx)
	resp, err := s.next.Complete(ctx, req)
	s.audit.end(req, notes, s.finish(ctx, req, resp, err, began))
	return resp, err
}

func (s *observed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, began := s.start(ctx, req)
		ctx, notes := s.audit.begin(ctx)
		var resp *llm.Response
		var failed error = llm.ErrCancelled // what is left if the reader goes away
		for f, err := range s.next.Stream(ctx, req) {
			if failed = llm.ErrCancelled; err != nil {
				failed = err
			} else if f.Type == llm.FrameEnd {
				resp, failed = f.Response, nil
			}
			if !yield(f, err) {
				break
			}
		}
		s.audit.end(req, notes, s.finish(ctx, req, resp, failed, began))
	}
}

func (s *observed) start(ctx context.Context, req *llm.Request) (context.Context, time.Time) {
	now := time.Now()
	s.env.observer.Observe(Event{Name: EventRequestStarted, Time: now, RequestID: req.ID, Feature: req.Feature, Tenant: hashTenant(req.Tenant)})
	return s.env.followers.requestBegan(ctx, req), now
}

func (s *observed) finish(ctx context.Context, req *llm.Request, resp *llm.Response, err error, began time.Time) Ending {
	elapsed := time.Since(began)
	event := Event{Name: EventRequestSucceeded, Time: time.Now(), RequestID: req.ID, Feature: req.Feature, Tenant: hashTenant(req.Tenant), MS: elapsed.Milliseconds()}
	attrs := append(make([]slog.Attr, 0, 24), slog.String("id", req.ID), slog.String("feature", req.Feature), slog.String("class", string(req.Class)),
		slog.String("tenant", event.Tenant), slog.Bool("stream", req.Stream), slog.Int64("total_ms", event.MS))
	level, ending := slog.LevelInfo, Ending{Response: resp, Elapsed: elapsed}
	if err != nil {
		e := asError(err)
		level, ending = slog.LevelWarn, Ending{Error: e, Elapsed: elapsed}
		event.Name, event.Code = EventRequestFailed, e.Code
		attrs = append(attrs, errorAttrs(e)...)
	} else {
		event.FirstTokenMS = resp.Timing.FirstTokenMS
		event.Provider, event.Model = resp.Provider, resp.Model
		attrs = appendResponse(attrs, resp)
	}
	attempts := ending.Attempts()
	for i := range attempts {
		event.CostUSD += attempts[i].CostUSD
	}
	if event.Attempts = len(attempts); event.Attempts > 0 {
		last := &attempts[event.Attempts-1]
		event.Class = last.Class
		attrs = append(attrs, slog.String("outcome", string(last.Class)), slog.String("breaker", last.Breaker))
	}
	in, out := spent(attempts)
	attrs = append(attrs, slog.Int("attempts", event.Attempts), slog.Int64("input_tokens", in), slog.Int64("output_tokens", out), dollars(event.CostUSD))
	s.write(ctx, level, attrs)
	s.env.observer.Observe(event)
	s.env.followers.requestEnded(ctx, req, ending)
	return ending
}

// dollars is a cost. slog takes encoding/json for every float, which no cost at
// all is not worth.
func dollars(usd float64) slog.Attr {
	if usd == 0 {
		return slog.Int64("cost_usd", 0)
	}
	return slog.Float64("cost_usd", usd)
}

// write logs the line. It does not look for its place in the source, which every
// line of the logger would have and which costs as much as half of the rest.
func (s *observed) write(ctx context.Context, level slog.Level, attrs []slog.Attr) {
	h := s.env.log.Handler()
	if !h.Enabled(ctx, level) {
		return
	}
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(attrs...)
	_ = h.Handle(ctx, line) // as the logger does
}

func appendResponse(attrs []slog.Attr, resp *llm.Response) []slog.Attr {
	attrs = append(attrs,
		slog.String("provider", resp.Provider), slog.String("model", resp.Model), slog.String("model_version", resp.ModelVersion),
		slog.String("served_by", string(resp.ServedBy)), slog.String("finish_reason", string(resp.FinishReason)),
		slog.Int64("first_token_ms", resp.Timing.FirstTokenMS), slog.Bool("degraded", resp.Degraded),
	)
	if resp.Fallback != "" {
		attrs = append(attrs, slog.String("fallback", string(resp.Fallback)))
	}
	return attrs
}

// errorAttrs name the target that was asked last, if any was.
func errorAttrs(e *llm.Error) []slog.Attr {
	attrs := []slog.Attr{slog.String("code", string(e.Code)), slog.Bool("degraded", e.Degraded)}
	if n := len(e.Attempts); n > 0 {
		last := &e.Attempts[n-1]
		attrs = append(attrs, slog.String("provider", last.Provider), slog.String("model", last.Model), slog.Int64("first_token_ms", last.FirstTokenMS))
	}
	return attrs
}

// spent are the tokens of all attempts, as their cost is.
func spent(attempts []llm.Attempt) (in, out int64) {
	for i := range attempts {
		if u := attempts[i].Usage; u != nil {
			in, out = in+value(u.InputTokens), out+value(u.OutputTokens)
		}
	}
	return in, out
}

// asError gives every error of a lower stage a code.
func asError(err error) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return llm.Errorf(llm.CodeInternal, "%w", err)
}

// hashTenant makes a tenant recognisable in logs without naming it.
func hashTenant(tenant string) string {
	if tenant == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:6])
}
