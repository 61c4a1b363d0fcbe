package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go/micro"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// take is called for every prompt, one after another, and never waits.
func (a *agent) take(work context.Context, req micro.Request) {
	if !a.cfg.Inboxes.Allowed(req.Reply()) { // nobody could read the answer
		return
	}
	out := &answer{conn: a.cfg.Conn, to: req.Reply()}
	text, err := decode(req.Data())
	if err != nil {
		out.fail(err)
		return
	}
	token := rand.Text()
	ctx, done, refused := a.begin(work, token)
	if refused != nil {
		out.fail(refused)
		return
	}
	if reports(req.Reply()) {
		out.presence = a.inbox + "." + token
	}
	go func() {
		defer done()
		a.prompt(ctx, text, out)
	}()
}

// reports tells whether the server's report on an inbox means anything: the
// inboxes that it makes for imports and gateways always have a subscriber.
func reports(inbox string) bool {
	return !strings.HasPrefix(inbox, "_R_") && !strings.HasPrefix(inbox, "_GR_")
}

// prompt asks the feature and passes the answer on.
func (a *agent) prompt(ctx context.Context, text string, out *answer) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.cfg.MaxTimeout, llm.ErrDeadline)
	defer cancel()
	stop := out.begin(a.cfg.KeepAlive)
	req := &llm.Request{Feature: a.feature, Stream: true, Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(text)}}}
	e := a.forward(ctx, req, out)
	stop() // no ack may come between the error and the end
	if e != nil {
		out.fail(e)
		return
	}
	out.end()
}

// forward passes the text on as it comes. What it returns ended the answer.
func (a *agent) forward(ctx context.Context, req *llm.Request, out *answer) *llm.Error {
	var whole stream.Assembly
	attempt := 0
	for f, err := range a.cfg.Completer.Stream(ctx, req) {
		switch {
		case err != nil:
			return a.reason(ctx, err)
		case f.Type == llm.FrameError:
			return f.Error
		case f.Type == llm.FrameStart && f.Attempt > attempt && whole.Text() != "":
			return llm.Errorf(llm.CodeInterrupted, "the answer was begun anew after a part of it was shown; ask again")
		case f.Type == llm.FrameEnd:
			return finish(&whole, f.Response, out)
		}
		attempt = max(attempt, f.Attempt)
		whole.Add(&f)
		if f.Type == llm.FrameDelta {
			out.say(f.Text)
		}
	}
	return llm.Errorf(llm.CodeInternal, "the answer has no end")
}

// finish says what the frames have not, if that can be said.
func finish(whole *stream.Assembly, resp *llm.Response, out *answer) *llm.Error {
	if resp.Job != nil {
		return llm.Errorf(llm.CodeUnavailable, "a job makes the answer, which will be on %s", resp.Job.Result)
	}
	rest, ok := whole.Missing(resp.Content)
	if !ok {
		return llm.Errorf(llm.CodeInterrupted, "the answer is another than what was shown of it; ask again")
	}
	out.say(rest)
	return nil
}

// reason is why there is no answer. What is no *llm.Error is logged by its type
// alone.
func (a *agent) reason(ctx context.Context, err error) *llm.Error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*llm.Error](context.Cause(ctx)); ok {
		return e
	}
	a.cfg.Log.Error("a prompt failed in an unexpected way", "feature", a.feature)
	return llm.ErrInternal
}

// decode reads the payload of a prompt: text, or an object whose prompt is one.
func decode(payload []byte) (string, *llm.Error) {
	if trimmed := bytes.TrimLeft(payload, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		if len(trimmed) == 0 || !utf8.Valid(payload) {
			return "", llm.Errorf(llm.CodeInvalidRequest, "the payload must be a text in UTF-8, or a JSON object with prompt")
		}
		return string(payload), nil
	}
	var envelope struct {
		Prompt      string            `json:"prompt"`
		Attachments []json.RawMessage `json:"attachments"`
	}
	switch err := json.Unmarshal(payload, &envelope); {
	case err != nil || envelope.Prompt == "":
		return "", llm.Errorf(llm.CodeInvalidRequest, "prompt must be a text that is not empty, in a JSON object")
	case len(envelope.Attachments) > 0:
		return "", llm.Errorf(llm.CodeInvalidRequest, "attachments must be absent: this agent takes none")
	}
	return envelope.Prompt, nil
}
