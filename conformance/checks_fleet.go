package conformance

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/llmbus/llmbus/schemas"
	"github.com/llmbus/llmbus/subjects"
)

func (c *caller) fleetChecks() []check {
	return []check{
		{"workers tell their state", c.status},
		{"workers are a service and publish their schemas", c.service},
		{"events tell what becomes of a request", c.events},
	}
}

func (c *caller) status(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subjects.Status, nil)
	if err != nil {
		return err
	}
	return c.judge.Check("status", msg.Data)
}

// service asks one worker for what it publishes of itself.
func (c *caller) service(ctx context.Context) error {
	subject, err := micro.ControlSubject(micro.InfoVerb, "llmbus", "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subject, nil)
	if err != nil {
		return err
	}
	info, err := unmarshal[micro.Info](msg.Data)
	if err != nil {
		return err
	}
	if info.Metadata["request_subject"] == "" {
		return fmt.Errorf("the service's metadata does not name its request_subject")
	}
	for _, e := range info.Endpoints {
		if e.Subject != subjects.Status {
			continue
		}
		for name, want := range schemas.Metadata() {
			if e.Metadata[name] != want {
				return fmt.Errorf("the status endpoint's metadata has another %s than this kit", name)
			}
		}
		return nil
	}
	return fmt.Errorf("the service has no endpoint on %s", subjects.Status)
}

// events follows one request by its id.
func (c *caller) events(ctx context.Context) error {
	q := c.ask(`{"prompt":"hello"}`)
	heard := make(chan *nats.Msg, buffered)
	sub, err := c.nc.ChanSubscribe(subjects.Events, heard)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	asked, err := c.begin("request with events", q)
	if err != nil {
		return err
	}
	if err := asked.whole(ctx, expected{Answer: true}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.patience, fmt.Errorf("no request_succeeded within %s", c.patience))
	defer cancel()
	for seen := ""; seen != "request_succeeded"; {
		select {
		case msg := <-heard:
			if seen, err = c.judgeEvent(q.id, msg, seen); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// judgeEvent returns the name of the last event of the request so far.
func (c *caller) judgeEvent(id string, msg *nats.Msg, last string) (string, error) {
	e, err := unmarshal[struct {
		Event     string `json:"event"`
		RequestID string `json:"request_id"`
	}](msg.Data)
	if err != nil || e.RequestID != id {
		return last, nil // of somebody else's request
	}
	switch {
	case last == "" && e.Event != "request_started":
		return last, fmt.Errorf("the first event of a request is not request_started")
	case msg.Subject != subjects.Event(e.Event):
		return last, fmt.Errorf("an event came on the subject of another")
	}
	return e.Event, c.judge.Check("event", msg.Data)
}
