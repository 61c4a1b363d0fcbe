package openai

import (
	"context"
	"errors"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// reader takes the JSON of one API: a whole answer, or one event of a stream.
type reader interface {
	take(event string, data []byte) error
	gathered() *answer
}

// reported is an error that came within an answer.
type reported struct{ problem wire.Problem }

// Error has no words of the provider's.
func (*reported) Error() string { return "the provider reported an error" }

// whole reads an answer in one body.
func whole(resp *wire.Response, r reader) error {
	body, err := resp.ReadAll()
	if err != nil {
		return err
	}
	if err := r.take("", body); err != nil {
		return err
	}
	if !r.gathered().seen {
		return wire.ErrBroken // JSON, but no answer
	}
	r.gathered().done()
	return nil
}

// pieces reads an answer as server-sent events.
func pieces(ctx context.Context, resp *wire.Response, r reader) error {
	events, a := resp.SSE(), r.gathered()
	a.more = events.Buffered
	err := takeAll(ctx, resp, events, r)
	if left := a.show(); left != nil { // what came before an error was an answer, too
		return left
	}
	return err
}

// takeAll takes events to the end. From the finish reason on the answer is good
// whatever follows; what usually follows is its usage.
func takeAll(ctx context.Context, resp *wire.Response, events *wire.SSE, r reader) error {
	a := r.gathered()
	for {
		event, err := events.Next()
		switch {
		case err != nil && a.finish != "" && !cancelled(ctx):
			return nil
		case err != nil:
			return resp.Broken(err)
		case event.Done():
			a.done()
			return nil
		}
		finished := a.finish != ""
		switch err := r.take(event.Name, event.Data); {
		case err != nil && finished && !errors.Is(err, errLeft):
			return nil
		case err != nil:
			return err
		case a.over:
			return nil
		case !finished && a.finish != "":
			resp.EndWithin(usageGrace)
		}
		if !events.Buffered() {
			if err := a.show(); err != nil {
				return err
			}
		}
	}
}

// cancelled reports whether the caller went away, in contrast to a limit on the
// time that a provider may be silent.
func cancelled(ctx context.Context) bool {
	return ctx.Err() != nil && provider.FromContext(ctx).Outcome == llm.OutcomeCancelled
}
