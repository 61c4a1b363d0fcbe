package once

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
)

// visit is one request on its way to the answer of its key.
type visit struct {
	*Once
	req   *llm.Request
	key   string
	mine  record // the claim, if the call falls to this request
	view  *view  // where frames are shown; nil: nowhere
	work  func(context.Context, *call) (*llm.Response, error)
	began time.Time

	followed   string    // token of the call that is followed
	heard      time.Time // when its worker was last heard, or could have been
	reconnects uint64    // of this worker's connection, at that time
}

func (o *Once) visit(req *llm.Request, view *view, work func(context.Context, *call) (*llm.Response, error)) *visit {
	token := rand.Text()
	return &visit{Once: o, req: req, key: recordKey(req), view: view, work: work, began: time.Now(),
		mine: record{State: running, Call: token, Worker: o.cfg.Worker, Body: req.Digest()}}
}

// run goes round until there is an answer: make the call, or find it kept, or
// follow it where it is made.
func (v *visit) run(ctx context.Context) (*llm.Response, error) {
	select {
	case <-v.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c, owned := v.calls.add(v.mine.Call), false // before the claim, which others may see before this worker knows of it
	defer func() {
		if !owned {
			v.calls.remove(v.mine.Call)
		}
	}()
	for over := uint64(0); ; {
		rec, err := v.find(ctx, over)
		switch {
		case err != nil:
			return nil, err
		case rec.Call == v.mine.Call:
			owned = true
			return v.own(ctx, rec, c)
		case rec.Body != v.mine.Body:
			return nil, errOtherBody
		case rec.State == done:
			return v.replay(rec.Response, rec.Error, "stored")
		}
		resp, err := v.follow(ctx, rec)
		switch {
		case errors.Is(err, errReleased):
			if over == rec.revision && !pause(ctx, lagPause) { // the record that was read may be an old one
				return nil, context.Cause(ctx)
			}
			over = rec.revision
		case errors.Is(err, errAway):
			if over = 0; v.silent() {
				over = rec.revision
				v.cfg.Log.Warn("the worker of a call is gone", "id", v.req.ID, "feature", v.req.Feature, "worker", rec.Worker)
			} else if !pause(ctx, v.cfg.Patience/20) {
				return nil, context.Cause(ctx)
			}
		case err != nil:
			return nil, err
		default:
			return v.replay(resp, nil, "joined")
		}
	}
}

// find claims the key, or returns the record that is there. A reader that was
// shown text of a call can be served by that call only.
func (v *visit) find(ctx context.Context, over uint64) (*record, error) {
	if !v.view.committed() {
		return v.claim(ctx, v.key, v.mine, over)
	}
	rec, err := v.look(ctx, v.key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, errBrokeOff
	case err != nil:
		return nil, err
	case rec.State == running && rec.revision == over:
		v.free(ctx, v.key, over)
		return nil, errBrokeOff
	case rec.Call != v.followed:
		return nil, errBrokeOff
	}
	return rec, nil
}

// silent reports whether the worker of the followed call was not heard for so
// long that it counts as gone. Time in which this worker had no connection does
// not count.
func (v *visit) silent() bool {
	if reconnects := v.cfg.Conn.Stats().Reconnects; !v.cfg.Conn.IsConnected() || reconnects != v.reconnects {
		v.heard, v.reconnects = time.Now(), reconnects
	}
	return time.Since(v.heard) >= v.cfg.Patience
}

// hear notes that the worker of that call lives, or is new to this request.
func (v *visit) hear(token string) {
	v.followed, v.heard, v.reconnects = token, time.Now(), v.cfg.Conn.Stats().Reconnects
}

// own makes the call. Also if it panics, nobody hears of its end before the key
// is kept or free.
func (v *visit) own(ctx context.Context, rec *record, c *call) (*llm.Response, error) {
	end := released
	defer func() { v.settle(ctx, rec, c, end) }()
	resp, err := v.work(ctx, c)
	givenUp := err != nil && (ctx.Err() != nil || errors.Is(err, errGone))
	end = judge(v.req, resp, err, givenUp, v.limit())
	return resp, err
}

// settle leaves the key kept or free. If the bucket cannot be reached, this
// worker goes on trying, and answers those who ask for the call meanwhile.
func (v *visit) settle(ctx context.Context, rec *record, c *call, end fate) {
	defer c.end(end.last)
	if end.response == nil && end.err == nil {
		v.free(ctx, v.key, rec.revision)
		v.calls.remove(rec.Call)
		return
	}
	done := rec.ended(end)
	keep := func(ctx context.Context, within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return v.keep(ctx, v.key, done, rec.revision)
	}
	ended := func(err error) {
		v.calls.remove(rec.Call)
		if err != nil {
			v.cfg.Log.Warn("answer not kept for its idempotency key", "id", v.req.ID, "feature", v.req.Feature, "error", err)
		}
	}
	err := keep(context.WithoutCancel(ctx), keepWithin)
	if err == nil || !v.later(func(ctx context.Context) { ended(keep(ctx, keepFor)) }) {
		ended(err)
	}
}

// limit is the largest answer that is kept; a message must hold it too.
func (v *visit) limit() int {
	const overhead = 4 << 10 // the rest of the record
	return min(v.cfg.MaxAnswer, int(v.cfg.Conn.MaxPayload())-overhead)
}

// replay gives this request what another with its key got.
func (v *visit) replay(shared *llm.Response, failed *llm.Error, how string) (*llm.Response, error) {
	elapsed := time.Since(v.began).Milliseconds()
	attrs := []slog.Attr{slog.String("id", v.req.ID), slog.String("feature", v.req.Feature), slog.String("replayed", how), slog.Int64("total_ms", elapsed)}
	if failed != nil {
		v.cfg.Log.LogAttrs(context.Background(), slog.LevelWarn, "request", append(attrs, slog.String("code", string(failed.Code)))...)
		return nil, failed
	}
	v.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
	resp := *shared
	resp.ID, resp.Metadata, resp.Replayed = v.req.ID, v.req.Metadata, true
	resp.Warnings = slices.Concat(shared.Warnings, v.req.Warnings)
	resp.Timing = llm.Timing{TotalMS: elapsed}
	return &resp, nil
}
