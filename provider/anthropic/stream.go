package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/llmbus/llmbus/provider/wire"
)

// event is any event of a stream. Its type is in the data as well as in the
// event: field, which some proxies drop.
type event struct {
	Type    string      `json:"type"`
	Index   int         `json:"index"`
	Message *answer     `json:"message"`
	Block   answerBlock `json:"content_block"`
	Delta   delta       `json:"delta"`
	Usage   *usage      `json:"usage"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

// openCall is a tool call whose arguments come in pieces.
type openCall struct {
	index int    // of the call
	input string // arguments that came with the beginning, for when no piece follows
}

// endGrace is how long the rest of an answer may take once its stop reason is
// known. Only counts may still come, and they come at once.
const endGrace = 250 * time.Millisecond

// event takes one event of a stream. That ends with message_stop, [DONE], or
// whatever comes after the stop reason; an end before that is a failure.
func (r *reader) event(raw wire.Event) error {
	var e event
	if err := json.Unmarshal(raw.Data, &e); err != nil {
		return r.Resp.Broken(wire.ErrBroken)
	}
	switch cmp.Or(e.Type, raw.Name) {
	case "message_start":
		if e.Message != nil {
			r.model = e.Message.Model
			r.usage.update(&e.Message.Usage)
		}
	case "content_block_start":
		return r.begin(&e)
	case "content_block_delta":
		return r.delta(&e)
	case "message_delta":
		r.end(&e)
	case "message_stop":
		return wire.ErrEnd
	case "ping":
	default:
		return r.unknown(raw)
	}
	return nil
}

// unknown classifies an error event and skips any other. An error after the
// stop reason changes nothing.
func (r *reader) unknown(raw wire.Event) error {
	problem, failed := wire.ReadProblem(raw.Data)
	switch {
	case !failed && raw.Name != "error":
		return nil
	case r.reason != "":
		return wire.ErrEnd
	}
	return r.Resp.Classify(problem)
}

func (r *reader) begin(e *event) error {
	b := &e.Block
	if b.Type != blockToolUse {
		return r.words(b)
	}
	frame := r.Call(b.ID, b.Name)
	if r.calls == nil {
		r.calls = map[int]openCall{}
	}
	r.calls[e.Index] = openCall{frame.Index, strings.TrimSpace(string(b.Input))}
	return r.Send(frame)
}

// delta takes a piece in. Pieces of blocks that are no tool calls of ours, and
// kinds of pieces that are not known, are skipped.
func (r *reader) delta(e *event) error {
	d := &e.Delta
	switch {
	case d.Text != "":
		r.Say(d.Text)
	case d.Thinking != "":
		return r.Think(d.Thinking)
	case d.PartialJSON != "":
		if call, ours := r.calls[e.Index]; ours {
			return r.Send(r.Arguments(call.index, d.PartialJSON))
		}
	}
	return nil
}

func (r *reader) end(e *event) {
	if e.Usage != nil {
		r.usage.update(e.Usage)
	}
	if r.reason == "" && e.Delta.StopReason != "" {
		r.reason = e.Delta.StopReason
		r.Finish(endGrace)
	}
}

// close sends arguments that came whole with the beginning of their call, as
// some gateways send them.
func (r *reader) close() error {
	for _, call := range r.calls {
		if len(call.input) <= len("{}") || call.input == "null" || r.HasArguments(call.index) {
			continue
		}
		if err := r.Send(r.Arguments(call.index, call.input)); err != nil {
			return err
		}
	}
	return nil
}
