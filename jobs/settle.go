package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// known reads what has become of the job so far, and reports whether nothing
// but the acknowledgement is missing.
func (c *courier) known(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, afterWord)
	defer cancel()
	if msg, err := lastOf(ctx, c.results, subjects.Result(c.tenant, c.id)); err != nil || msg != nil {
		if msg != nil && c.delivery > 1 { // the worker may have died before it replied
			c.reply(msg.Data, msg.Header)
		}
		return msg != nil, err
	}
	msg, err := lastOf(ctx, c.dead, subjects.DeadLetter(c.feature, c.tenant, c.id))
	if err != nil {
		return false, err
	}
	if msg != nil {
		if replayOf(msg.Header) >= c.replay {
			var letter DeadLetter
			if c.delivery > 1 && json.Unmarshal(msg.Data, &letter) == nil {
				c.replyError(&letter.Error)
			}
			return true, nil
		}
		c.grave = msg.Sequence
	}
	c.history, err = c.recall(ctx, c.key, c.replay)
	return false, err
}

// lastOf reads the message of a subject; nil if there is none.
func lastOf(ctx context.Context, s jetstream.Stream, subject string) (*jetstream.RawStreamMsg, error) {
	msg, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// deliver stores the answer, replies with it and ends the job.
func (c *courier) deliver(ctx context.Context, resp *llm.Response) {
	data, err := resp.AppendReply(nil)
	if err != nil {
		c.bury(ctx, llm.Errorf(llm.CodeInternal, "the answer cannot be written as JSON"))
		return
	}
	header := nats.Header{subjects.HeaderRequestID: {c.id}, subjects.HeaderServedBy: {string(resp.ServedBy)}}
	if resp.Provider != "" {
		header.Set(subjects.HeaderProvider, resp.Provider)
	}
	stored, err := c.store(ctx, c.results, &nats.Msg{Subject: subjects.Result(c.tenant, c.id), Header: header, Data: data}, 0)
	switch {
	case errors.Is(err, errTooLarge):
		c.bury(ctx, &llm.Error{Code: llm.CodeTooLarge, Attempts: resp.Attempts, Message: "the answer is " + strconv.Itoa(len(data)) + " bytes, more than a message may hold"})
		return
	case err != nil: // another worker does all of it again
		c.log.Warn("the answer of a job was not stored before the end of the worker", "id", c.id, "error", err)
		c.putOff(0)
		return
	case stored:
		c.reply(data, header)
	}
	c.acknowledge(ctx)
}

// bury stores the dead letter, replies with the error and ends the job.
func (c *courier) bury(ctx context.Context, e *llm.Error) {
	letter := newLetter(c.job, c.history, e, c.clock.now())
	header := c.original()
	maps.Copy(header, c.errorHeader(e))
	msg := &nats.Msg{Subject: subjects.DeadLetter(c.feature, c.tenant, c.id), Header: header}
	stored, err := false, errTooLarge
	for _, l := range []*DeadLetter{letter, letter.without()} {
		if msg.Data, err = json.Marshal(l); err == nil {
			stored, err = c.store(ctx, c.dead, msg, c.grave)
		}
		if !errors.Is(err, errTooLarge) {
			break
		}
	}
	if err != nil {
		c.log.Warn("a dead letter was not stored before the end of the worker", "id", c.id, "error", err)
		c.putOff(0)
		return
	}
	c.log.Warn("job given up", "id", c.id, "feature", c.feature, "code", string(e.Code), "tries", c.history.Tries, "attempts", len(letter.Attempts))
	if stored {
		c.replyError(&letter.Error)
	}
	c.acknowledge(ctx)
}

func (c *courier) errorHeader(e *llm.Error) nats.Header {
	return nats.Header{subjects.HeaderRequestID: {c.id}, subjects.HeaderError: {e.Error()}, subjects.HeaderErrorCode: {strconv.Itoa(e.Code.Status())}}
}

func (c *courier) replyError(e *llm.Error) {
	if data, err := e.AppendReply(nil); err == nil {
		c.reply(data, c.errorHeader(e))
	}
}

// original are the headers of the job that a replay needs.
func (c *courier) original() nats.Header {
	h := nats.Header{}
	for _, name := range append(kept, subjects.HeaderReplay) {
		if v := c.header.Get(name); v != "" {
			h.Set(name, v)
		}
	}
	return h
}

// kept are the headers of a publisher that a replay sends again.
var kept = []string{subjects.HeaderReplyTo, subjects.HeaderExpiresMS, subjects.HeaderTenant, subjects.HeaderTraceParent}

// store publishes a message on the condition that the last of its subject has
// that sequence; 0 is none. stored is false when another worker was first. It
// tries until the stream has taken it or ctx ends.
func (c *courier) store(ctx context.Context, s jetstream.Stream, msg *nats.Msg, last uint64) (stored bool, err error) {
	id := c.key // jobs of two tenants may have the same id
	if c.replay > 0 {
		id += ".r" + strconv.Itoa(c.replay)
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		_, err := c.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(last))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, nats.ErrMaxPayload), codeOf(err) == codeMsgSize:
			return false, errTooLarge
		case codeOf(err) == jetstream.JSErrCodeStreamWrongLastSequence, codeOf(err) == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			found, getErr := lastOf(ctx, s, msg.Subject)
			switch {
			case getErr != nil:
			case found == nil: // a replay has removed the dead letter by now
				last = 0
			case found.Sequence > last:
				return false, nil
			}
		}
		if !sleep(ctx, wait) {
			return false, err
		}
	}
}

// codeMsgSize is the server's word for a message above the stream's limit.
const codeMsgSize jetstream.ErrorCode = 10054

func codeOf(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// reply sends the end of a job to the inbox that its publisher named. Nobody
// may listen there any more; the stream has it anyway.
func (c *courier) reply(data []byte, header nats.Header) {
	to := c.header.Get(subjects.HeaderReplyTo)
	if to == "" {
		return
	}
	if !c.cfg.Inboxes.AllowedByName(c.tenant, to) {
		c.log.Warn("a job's reply was dropped: its subject is not an inbox", "id", c.id)
		return
	}
	if err := c.cfg.Conn.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: data}); err != nil {
		c.log.Warn("a job's reply was not sent", "id", c.id, "error", err)
	}
}

// acknowledge takes the job out of the queue. If that fails the next worker
// finds what was stored and does the same.
func (c *courier) acknowledge(ctx context.Context) {
	c.lease.release()
	ctx, cancel := context.WithTimeout(ctx, afterWord)
	defer cancel()
	if err := c.msg.DoubleAck(ctx); err != nil {
		c.log.Warn("a job was not acknowledged", "id", c.id, "error", err)
		return
	}
	if c.history != nil {
		c.forget(ctx, c.key, c.history)
	}
}

// putOff gives the job back for a while, or at once. If that gets lost it comes
// back after AckWait.
func (c *courier) putOff(wait time.Duration) {
	if c.stopping() {
		<-c.quiet
	}
	c.lease.release()
	var err error
	if wait > 0 {
		err = c.msg.NakWithDelay(wait)
	} else {
		err = c.msg.Nak()
	}
	if err != nil {
		c.log.Warn("a job was not given back", "id", c.id, "error", err)
	}
}
