// Command conform lets the conformance kit judge package plain;
// docs/conformance.md says how.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	plain "github.com/llmbus/llmbus/examples/go"
)

type task struct {
	Do          string `json:"do"`
	Feature     string `json:"feature"`
	Prompt      string `json:"prompt"`
	TimeoutMS   int64  `json:"timeout_ms"`
	SilenceMS   int64  `json:"silence_ms"`
	CancelAfter int    `json:"cancel_after"`
}

type report struct {
	Outcome      string `json:"outcome"`
	Code         string `json:"code,omitempty"`
	Text         string `json:"text"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

func main() {
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	tasks := make(chan *nats.Msg, 16)
	if _, err := nc.ChanSubscribe("conformance.client", tasks); err != nil {
		log.Fatal(err)
	}
	for msg := range tasks {
		var t task
		if err := json.Unmarshal(msg.Data, &t); err != nil || t.Do == "end" {
			break
		}
		answer, _ := json.Marshal(t.carryOut(nc))
		if err := msg.Respond(answer); err != nil {
			log.Fatal(err)
		}
	}
	_ = nc.Drain()
}

func (t task) carryOut(nc *nats.Conn) report {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(t.TimeoutMS)*time.Millisecond)
	defer cancel()
	var answer *plain.Answer
	var err error
	id, body, shown, shows := plain.NewID(), map[string]any{"prompt": t.Prompt}, "", 0
	show := func(text string) {
		shown = text
		if shows++; shows == t.CancelAfter {
			_ = nc.Publish("llm.cancel."+id, nil)
		}
	}
	switch t.Do {
	case "complete":
		answer, err = plain.Ask(ctx, nc, t.Feature, body)
	case "stream", "stream_reply":
		answer, err = plain.Stream(ctx, nc, t.Feature, id, body, time.Duration(t.SilenceMS)*time.Millisecond, t.Do == "stream_reply", show)
	default:
		return report{Outcome: "unsupported"}
	}
	failed, isFailed := errors.AsType[*plain.Failed](err)
	switch {
	case err == nil:
		return report{Outcome: "answer", Text: answer.Content}
	case isFailed:
		return report{Outcome: "error", Code: failed.Code, RetryAfterMS: failed.RetryAfterMS, Text: shown}
	case errors.Is(err, nats.ErrNoResponders):
		return report{Outcome: "no_responders"}
	}
	return report{Outcome: "broken", Text: shown}
}
