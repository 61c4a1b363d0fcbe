package chain

import (
	"context"
	"time"

	"github.com/llmbus/llmbus/llm"
)

// Follower goes along with every request and every call of it, as metrics,
// traces and accounts do. Its methods are called by the goroutine of the
// request, in order and always in pairs; they must not block and must not keep
// or change what they are given. The contexts that the first of a pair returns
// carry its own state, such as a span, to what happens within.
type Follower interface {
	RequestBegan(context.Context, *llm.Request) context.Context
	RequestEnded(context.Context, *llm.Request, Ending)
	AttemptBegan(ctx context.Context, req *llm.Request, provider, model string) context.Context
	AttemptEnded(context.Context, *llm.Request, *llm.Attempt) // priced, whatever became of it
}

// Ending is what became of a request. One of Response and Error is nil.
type Ending struct {
	Response *llm.Response
	Error    *llm.Error
	Elapsed  time.Duration
}

// Attempts are the calls that were made, in order.
func (e Ending) Attempts() []llm.Attempt {
	if e.Error != nil {
		return e.Error.Attempts
	}
	return e.Response.Attempts
}

// followers are told in order of what begins and in reverse of what ends.
type followers []Follower

func (fs followers) requestBegan(ctx context.Context, req *llm.Request) context.Context {
	for _, f := range fs {
		ctx = f.RequestBegan(ctx, req)
	}
	return ctx
}

func (fs followers) requestEnded(ctx context.Context, req *llm.Request, e Ending) {
	for i := len(fs) - 1; i >= 0; i-- {
		fs[i].RequestEnded(ctx, req, e)
	}
}

func (fs followers) attemptBegan(ctx context.Context, req *llm.Request, t *Target) context.Context {
	for _, f := range fs {
		ctx = f.AttemptBegan(ctx, req, t.Provider, t.Model)
	}
	return ctx
}

func (fs followers) attemptEnded(ctx context.Context, req *llm.Request, a *llm.Attempt) {
	for i := len(fs) - 1; i >= 0; i-- {
		fs[i].AttemptEnded(ctx, req, a)
	}
}
