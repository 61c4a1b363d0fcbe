package conformance

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
)

// frame is what the checks read of one.
type frame struct {
	Seq      uint64     `json:"seq"`
	Attempt  int        `json:"attempt"`
	Type     string     `json:"type"`
	Text     string     `json:"text"`
	Response *body      `json:"response"`
	Error    *llm.Error `json:"error"`
}

func (f *frame) terminal() bool { return f.Type == "end" || f.Type == "error" }

// told is what a stream says when it is read as a caller should.
type told struct {
	text  string
	calls bool
	pings int
	last  frame
}

// judgeFrames checks a whole stream: every frame, their numbers and order, one
// end, and the headers of the first and the last.
func (c *caller) judgeFrames(id string, messages []*nats.Msg, from uint64) (told, error) {
	var t told
	var text strings.Builder
	started := from > 1
	for i, msg := range messages {
		f, err := c.judgeFrame(msg)
		switch {
		case err != nil:
			return t, fmt.Errorf("frame %d: %w", i+1, err)
		case f.Seq != from+uint64(i):
			return t, fmt.Errorf("frame %d has number %d, not %d", i+1, f.Seq, from+uint64(i))
		case i > 0 && f.Attempt < t.last.Attempt:
			return t, fmt.Errorf("frame %d has a lower attempt than the one before it", i+1)
		case i > 0 && t.last.terminal():
			return t, fmt.Errorf("frame %d follows the last", i+1)
		case !started && (f.Type == "delta" || f.Type == "tool_call"):
			return t, fmt.Errorf("frame %d has text before any start", i+1)
		}
		switch f.Type {
		case "start":
			started = true
			text.Reset() // a later attempt replaces what came before
		case "delta":
			text.WriteString(f.Text)
		case "tool_call":
			t.calls = true
		case "ping":
			t.pings++
		}
		t.last = f
	}
	t.text = text.String()
	return t, c.judgeEnd(id, messages, t)
}

func (c *caller) judgeFrame(msg *nats.Msg) (frame, error) {
	if err := c.judge.Check("frame", msg.Data); err != nil {
		return frame{}, err
	}
	return unmarshal[frame](msg.Data)
}

func (c *caller) judgeEnd(id string, messages []*nats.Msg, t told) error {
	if !t.last.terminal() {
		return fmt.Errorf("the stream has no end")
	}
	if id == "" { // frames that are read again have no headers
		return nil
	}
	b := body{Error: t.last.Error}
	if r := t.last.Response; r != nil {
		b = *r
		if r.Content != "" {
			return fmt.Errorf("the end frame repeats the text")
		}
		if t.calls && len(r.Calls) > 0 {
			return fmt.Errorf("the end frame repeats the tool calls")
		}
	}
	return c.judgeHeader(id, b, messages[len(messages)-1].Header)
}

// inboxFrames takes the empty message off the end of a stream that came on the
// reply subject.
func inboxFrames(messages []*nats.Msg) ([]*nats.Msg, error) {
	n := len(messages)
	for i, msg := range messages {
		if len(msg.Data) == 0 && i < n-1 {
			return nil, fmt.Errorf("message %d of %d is empty", i+1, n)
		}
	}
	if n == 0 || len(messages[n-1].Data) > 0 {
		return nil, fmt.Errorf("the last message is not empty")
	}
	return messages[:n-1], nil
}
