package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// player is a worker that follows a script.
type player struct {
	*stage
	script  script
	feature string

	cancel  context.CancelFunc
	subs    []*nats.Subscription
	playing sync.WaitGroup

	cancelled   chan struct{} // closed by the client's first cancel
	firstCancel sync.Once
	cancelID    string // of that cancel

	mu     sync.Mutex
	plays  int
	ended  bool // nothing more is played
	faults []error
}

// begin takes the requests of the script's feature.
func (p *player) begin(ctx context.Context) error {
	p.cancelled = make(chan struct{})
	ctx, p.cancel = context.WithCancel(ctx)
	if !p.script.Nobody {
		err := p.listen(subjects.Complete(p.feature), func(msg *nats.Msg) {
			if play := p.next(); play != nil {
				go func() {
					defer p.playing.Done()
					p.note(p.play(ctx, msg, play))
				}()
			}
		})
		if err != nil {
			return err
		}
	}
	if err := p.listen(subjects.Cancels, p.onCancel); err != nil {
		return err
	}
	return p.flush(ctx)
}

func (p *player) listen(subject string, handle nats.MsgHandler) error {
	sub, err := p.nc.Subscribe(subject, handle)
	if err == nil {
		p.subs = append(p.subs, sub)
	}
	return err
}

// end stops playing and returns what was wrong with the client's messages.
func (p *player) end() error {
	if p.script.Cancels {
		p.note(p.sawCancel())
	}
	p.cancel()
	for _, sub := range p.subs {
		_ = sub.Unsubscribe() // fails only with the connection
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.playing.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.faults...)
}

func (p *player) note(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, err)
	}
}

// next is the play of the next request, whose end playing waits for. It is nil
// for a request that comes after the end.
func (p *player) next() []step {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.playing.Add(1)
	n := min(p.plays, len(p.script.Plays)-1)
	p.plays++
	return p.script.Plays[n]
}

func (p *player) onCancel(msg *nats.Msg) {
	p.firstCancel.Do(func() {
		p.cancelID, _, _ = subjects.ParseCancel(msg.Subject)
		close(p.cancelled)
	})
}

// sawCancel gives a cancel that was sent just before the report time to come.
func (p *player) sawCancel() error {
	select {
	case <-p.cancelled:
		return nil
	case <-time.After(quiet):
		return fmt.Errorf("the client did not cancel its request")
	}
}

// play judges the request and then does what the script says.
func (p *player) play(ctx context.Context, msg *nats.Msg, steps []step) error {
	if err := p.judgeRequest(msg); err != nil {
		return err
	}
	id := msg.Header.Get(subjects.HeaderRequestID)
	for _, s := range steps {
		if err := p.step(ctx, msg, id, s); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) step(ctx context.Context, msg *nats.Msg, id string, s step) error {
	switch {
	case s.Frame != nil:
		to := subjects.Stream("", id)
		if p.script.Do == DoStreamReply {
			to = msg.Reply
		}
		return p.send(to, id, s.Frame)
	case s.Reply != nil:
		return p.send(msg.Reply, id, s.Reply)
	case s.Raw != nil:
		return p.nc.Publish(msg.Reply, []byte(*s.Raw))
	case s.Empty:
		return p.nc.Publish(msg.Reply, nil)
	}
	until := p.cancelled
	var wait <-chan time.Time
	if !s.Cancel {
		until, wait = nil, time.After(s.wait())
	}
	select {
	case <-until:
		if p.cancelID != id {
			return fmt.Errorf("the client cancelled another id than its request's")
		}
	case <-wait:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// send publishes a message with the headers that go with it.
func (p *player) send(to, id string, message json.RawMessage) error {
	message = bytes.ReplaceAll(message, []byte("$id"), []byte(id))
	header := nats.Header{}
	if id != "" {
		header.Set(subjects.HeaderRequestID, id)
	}
	if b, err := unmarshal[body](message); err == nil && b.Error != nil {
		header.Set(subjects.HeaderError, b.Error.Error())
		header.Set(subjects.HeaderErrorCode, strconv.Itoa(b.Error.Code.Status()))
		if b.Error.RetryAfterMS > 0 {
			header.Set(subjects.HeaderRetryAfter, strconv.FormatInt((b.Error.RetryAfterMS+999)/1000, 10))
		}
	}
	return p.nc.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: message})
}

// judgeRequest checks what a client sends.
func (p *player) judgeRequest(msg *nats.Msg) error {
	if err := p.judge.CheckHeader("request-headers", msg.Header); err != nil {
		return err
	}
	if err := p.judge.Check("request", msg.Data); err != nil {
		return err
	}
	r, err := unmarshal[struct {
		Stream   bool         `json:"stream"`
		StreamTo llm.StreamTo `json:"stream_to"`
	}](msg.Data)
	id := msg.Header.Get(subjects.HeaderRequestID)
	toReply := r.StreamTo == llm.StreamToReply || r.StreamTo == "" && id == ""
	switch {
	case err != nil:
		return err
	case !(subjects.Inboxes{}).Allowed(msg.Reply):
		return fmt.Errorf("the reply subject of the request is no inbox")
	case r.Stream != (p.script.Do != DoComplete):
		return fmt.Errorf("stream is not what the task says")
	case p.script.Do == DoStream && id == "":
		return fmt.Errorf("a stream on a subject needs %s", subjects.HeaderRequestID)
	case r.Stream && toReply != (p.script.Do == DoStreamReply):
		return fmt.Errorf("the frames are not asked for where the task says")
	}
	return nil
}
