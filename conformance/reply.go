package conformance

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// body is what the checks read of a reply.
type body struct {
	ID       string        `json:"id"`
	Content  string        `json:"content"`
	ServedBy string        `json:"served_by"`
	Provider string        `json:"provider"`
	Replayed bool          `json:"replayed"`
	Metadata any           `json:"metadata"`
	Warnings []string      `json:"warnings"`
	Calls    []any         `json:"tool_calls"`
	Attempts []llm.Attempt `json:"attempts"`
	Error    *llm.Error    `json:"error"`
}

// judgeReply checks one reply: payload, headers, and that they agree.
func (c *caller) judgeReply(id string, msg *nats.Msg) (body, error) {
	if err := c.judge.Check("reply", msg.Data); err != nil {
		return body{}, err
	}
	b, err := unmarshal[body](msg.Data)
	if err != nil {
		return b, err
	}
	if id != "" && b.Error == nil && b.ID != id {
		return b, fmt.Errorf("the reply's id is not the request's")
	}
	return b, c.judgeHeader(id, b, msg.Header)
}

// judgeHeader checks the headers of a reply or a last frame against its body.
func (c *caller) judgeHeader(id string, b body, h nats.Header) error {
	if err := c.judge.CheckHeader("reply-headers", h); err != nil {
		return err
	}
	want := map[string]string{}
	if id != "" {
		want[subjects.HeaderRequestID] = id
	}
	if e := b.Error; e != nil {
		want[subjects.HeaderError] = e.Error()
		want[subjects.HeaderErrorCode] = strconv.Itoa(e.Code.Status())
		if e.RetryAfterMS > 0 {
			want[subjects.HeaderRetryAfter] = strconv.FormatInt((e.RetryAfterMS+999)/1000, 10)
		}
	} else {
		want[subjects.HeaderServedBy] = b.ServedBy
		if b.Provider != "" {
			want[subjects.HeaderProvider] = b.Provider
		}
		if h.Get(subjects.HeaderError) != "" {
			return fmt.Errorf("an answer has the header %s", subjects.HeaderError)
		}
	}
	for name, value := range want {
		if h.Get(name) != value {
			return fmt.Errorf("header %s is not what the payload says", name)
		}
	}
	return nil
}

// expected is what a reply or a last frame must say.
type expected struct {
	Answer   bool     `json:"answer"`
	Code     llm.Code `json:"code"`
	Names    string   `json:"names"`    // part of the error's message
	Warns    string   `json:"warns"`    // part of a warning
	Metadata any      `json:"metadata"` // returned
}

func (e expected) judge(b body) error {
	switch {
	case e.Answer && b.Error != nil:
		return fmt.Errorf("an answer was due, not %s", b.Error.Code)
	case !e.Answer && b.Error == nil:
		return fmt.Errorf("the error %s was due, not an answer", e.Code)
	case !e.Answer && b.Error.Code != e.Code:
		return fmt.Errorf("the error %s was due, not %s", e.Code, b.Error.Code)
	case !e.Answer && !strings.Contains(b.Error.Message, e.Names):
		return fmt.Errorf("the message of the error does not name %s", e.Names)
	case e.Warns != "" && !strings.Contains(strings.Join(b.Warnings, "\n"), e.Warns):
		return fmt.Errorf("no warning names %s", e.Warns)
	case e.Metadata != nil && fmt.Sprint(b.Metadata) != fmt.Sprint(e.Metadata):
		return fmt.Errorf("the metadata did not come back")
	}
	return nil
}
