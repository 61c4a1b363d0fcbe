package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

// relay passes the frames of one answer on to a reader that came back: first
// those that are kept, then those that come. It listens before it reads, so
// that there is nothing between the two.
type relay struct {
	nc       *nats.Conn
	replay   Replay
	source   string // where the frames are published and kept
	to       string // the reader
	key      string // under which the relay can be stopped
	presence string // where the server reports that the reader is gone; may be empty

	want      uint64 // the next frame the reader needs
	committed bool   // it has, or may have, a part of the answer
	asked     bool   // whether it is there
	done      bool
}

// relayed is how many frames may wait for a relay. More are dropped and then
// read from what is kept.
const relayed = 256

// Waits between readings of frames that were announced and are not kept yet.
const (
	firstLook = 20 * time.Millisecond
	looks     = 7 // 2.5 s in all
)

func (r *relay) run(ctx context.Context) error {
	live := make(chan *nats.Msg, relayed)
	sub, err := r.nc.ChanSubscribe(r.source, live)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	flushed, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if err := r.nc.FlushWithContext(flushed); err != nil {
		return err
	}
	known, err := r.catchUp(ctx)
	if err == nil && !known {
		err = llm.Errorf(llm.CodeUnknownRequest, "no frames of this id are kept: it is unknown, was not resumable, or is too long ago")
	}
	for err == nil && !r.done {
		err = r.follow(ctx, live)
	}
	return err
}

// catchUp passes on what is kept and is due. known is false if nothing is kept.
func (r *relay) catchUp(ctx context.Context) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	var kept []glimpse
	first := uint64(0)
	for data, err := range r.replay.Read(ctx, r.source) {
		if err != nil {
			return false, err
		}
		f, err := glance(data)
		if err != nil {
			return false, err
		}
		if f.Seq == 1 || first == 0 { // a request that was begun anew counts from 1 again
			kept, first = kept[:0], f.Seq
		}
		if f.Seq >= r.want {
			kept = append(kept, f)
		}
	}
	if first > r.want {
		return true, llm.Errorf(llm.CodeUnknownRequest, "frame %d is not kept any more, the oldest is %d", r.want, first)
	}
	for _, f := range kept {
		if f.Seq != r.want {
			break
		}
		if err := r.pass(f); err != nil {
			return true, err
		}
	}
	return first > 0, nil
}

// follow takes the next frame as it comes.
func (r *relay) follow(ctx context.Context, live <-chan *nats.Msg) error {
	timer := time.NewTimer(originSilent)
	defer timer.Stop()
	var msg *nats.Msg
	select {
	case msg = <-live:
	case <-timer.C:
		return llm.Errorf(llm.CodeInterrupted, "the worker of this request fell silent")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f, err := glance(msg.Data)
	switch {
	case err != nil:
		return nil // not from a worker
	case f.Seq == 1 && !r.committed:
		r.want = 1 // another worker has begun the request anew
	case f.Seq < r.want:
		return nil // it was among the kept ones
	case f.Seq > r.want:
		if err := r.fill(ctx, f.Seq); err != nil {
			return err
		}
	}
	if f.Seq == r.want && !r.done {
		return r.pass(f)
	}
	return nil
}

// fill gets the frames below upTo, which were published and passed us by.
func (r *relay) fill(ctx context.Context, upTo uint64) error {
	wait := firstLook
	for range looks {
		if _, err := r.catchUp(ctx); err != nil || r.done || r.want >= upTo {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait *= 2
	}
	return llm.Errorf(llm.CodeInterrupted, "frame %d was lost", r.want)
}

// pass sends one frame on. Pings ask whether the reader is still there.
func (r *relay) pass(f glimpse) error {
	reply := ""
	if !r.asked || f.Type == llm.FramePing {
		reply = r.presence
	}
	var err error
	if reply == "" {
		err = r.nc.Publish(r.to, f.data)
	} else {
		err = r.nc.PublishRequest(r.to, reply, f.data)
	}
	r.want = f.Seq + 1
	r.committed = r.committed || f.commits()
	r.asked, r.done = true, f.terminal()
	return err
}
