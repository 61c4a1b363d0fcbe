package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

var (
	errPanic    = errors.New("the adapter panicked; the worker's log tells where")
	errNoAnswer = errors.New("the adapter gave neither an answer nor an error")
)

// survive makes a call whose adapter may panic. That is a failure of the target
// like any other: its breaker hears of it, a probe gives its lease back, and
// another target may serve. The value of the panic may hold a prompt and is not
// logged. A panic of the stream's reader is not the adapter's and goes on.
func (r *run) survive(ctx context.Context, t *Target, do call) (resp *llm.Response, err error) {
	panicked := true
	defer func() {
		if !panicked {
			return
		}
		if r.reading {
			r.report(ctx, t, provider.Fail(llm.OutcomeCancelled, nil), true)
			return
		}
		value := recover()
		r.env.log.LogAttrs(ctx, slog.LevelError, "adapter panicked", slog.String("id", r.req.ID), slog.String("provider", t.Provider),
			slog.String("model", t.Model), slog.String("value_type", fmt.Sprintf("%T", value)), slog.String("stack", string(debug.Stack())))
		resp, err = nil, provider.Fail(llm.OutcomeUnavailable, errPanic)
	}()
	resp, err = do(ctx, t)
	panicked = false
	return resp, err
}
