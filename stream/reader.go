package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

// Next waits for the next message of a stream. A *nats.Subscription's
// NextMsgWithContext is one, for either form: a subscription on
// llm.stream.<request-id>, or on the reply inbox of a request.
type Next func(ctx context.Context) (*nats.Msg, error)

// Read yields the frames of one answer, pings too, up to the end frame. An
// error is the last thing yielded:
//
//   - the *llm.Error that the worker sent, together with its error frame;
//   - a *GapError when frames are missing;
//   - ErrSilent when nothing came for as long as silence (0 waits without limit;
//     three times the workers' ping interval is a good value);
//   - ErrTruncated when the messages end early;
//   - context.Cause(ctx), or what else next returned.
//
// Read does not unsubscribe.
func Read(ctx context.Context, next Next, silence time.Duration) iter.Seq2[llm.Frame, error] {
	return ReadFrom(ctx, next, 1, silence)
}

// ReadFrom is Read for a reader that wants the frames from number want on. As
// long as nothing of the answer has been yielded a frame may have number 1
// again: another worker has begun the request anew, and numbers count from there.
func ReadFrom(ctx context.Context, next Next, want uint64, silence time.Duration) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		rearm := func() {}
		if silence > 0 {
			timer := time.AfterFunc(silence, func() { cancel(ErrSilent) })
			defer timer.Stop()
			rearm = func() { timer.Reset(silence) }
		}
		for anew := want == 1; ; want++ {
			frame, err := receive(ctx, next, want, anew)
			if !yield(frame, err) || err != nil || frame.Terminal() {
				return
			}
			want = frame.Seq
			anew = anew && !committed(&frame)
			rearm()
		}
	}
}

// committed reports whether a frame carries a part of the answer, so that no
// other worker may begin it anew.
func committed(f *llm.Frame) bool {
	return f.Type == llm.FrameDelta || f.Type == llm.FrameToolCall
}

func receive(ctx context.Context, next Next, want uint64, anew bool) (llm.Frame, error) {
	msg, err := next(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return llm.Frame{}, context.Cause(ctx)
	case errors.Is(err, nats.ErrSlowConsumer):
		return llm.Frame{}, &GapError{Want: want}
	case errors.Is(err, nats.ErrBadSubscription), errors.Is(err, nats.ErrConnectionClosed):
		return llm.Frame{}, fmt.Errorf("%w: %w", ErrTruncated, err)
	case err != nil:
		return llm.Frame{}, err
	case len(msg.Data) == 0:
		return llm.Frame{}, ErrTruncated
	}
	frame, err := llm.DecodeFrame(msg.Data)
	if err != nil {
		if refused, ok := errors.AsType[*llm.Error](replyError(msg.Data)); ok {
			return llm.Frame{}, refused
		}
		return llm.Frame{}, err
	}
	if frame.Seq != want && !(anew && frame.Seq == 1) {
		return llm.Frame{}, &GapError{Want: want, Got: frame.Seq}
	}
	if frame.Type == llm.FrameError {
		return frame, frame.Error
	}
	return frame, nil
}

// replyError is the error in a message that is a reply and no frame: the
// refusal of a request that was never admitted.
func replyError(data []byte) error {
	_, err := llm.DecodeReply(data)
	return err
}
