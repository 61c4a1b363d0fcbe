package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// event is any event of a stream. Its type is in the data as well as in the
// event: field, which some proxies drop.
type event struct {
	Type    string       `json:"type"`
	Index   int          `json:"index"`
	Message *answer      `json:"message"`
	Block   *answerBlock `json:"content_block"`
	Delta   delta        `json:"delta"`
	Usage   *usage       `json:"usage"`
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

// errDone ends the reading of events.
var errDone = errors.New("done")

// events reads a stream. It ends with message_stop, [DONE], or whatever comes
// after the stop reason; an end before that is a failure.
func (r *reader) events() error {
	stream := r.resp.SSE()
	for {
		raw, err := stream.Next()
		switch {
		case err != nil && r.reason == "":
			return r.resp.Broken(err)
		case err != nil || raw.Done():
			return r.finishStream()
		}
		frame, err := r.event(raw)
		if errors.Is(err, errDone) {
			return r.finishStream()
		}
		if err != nil {
			return err
		}
		if err := r.emit(frame); err != nil {
			return err
		}
	}
}

// event takes one event in, and returns the frame for it, if any.
func (r *reader) event(raw wire.Event) (llm.Frame, error) {
	var e event
	if err := json.Unmarshal(raw.Data, &e); err != nil {
		return llm.Frame{}, r.resp.Broken(wire.ErrBroken)
	}
	switch cmp.Or(e.Type, raw.Name) {
	case "message_start":
		if e.Message != nil {
			r.model = e.Message.Model
			r.usage.update(&e.Message.Usage)
		}
	case "content_block_start":
		return r.begin(&e), nil
	case "content_block_delta":
		return r.delta(&e)
	case "message_delta":
		r.end(&e)
	case "message_stop":
		return llm.Frame{}, errDone
	case "ping":
	default:
		return llm.Frame{}, r.unknown(raw)
	}
	return llm.Frame{}, nil
}

// unknown classifies an error event and skips any other. An error after the
// stop reason changes nothing.
func (r *reader) unknown(raw wire.Event) error {
	problem, failed := wire.ReadProblem(raw.Data)
	switch {
	case !failed && raw.Name != "error":
		return nil
	case r.reason != "":
		return errDone
	}
	return r.resp.Classify(problem)
}

func (r *reader) begin(e *event) llm.Frame {
	switch b := e.Block; {
	case b == nil:
	case b.Type == blockToolUse:
		frame := r.asm.Call(b.ID, b.Name)
		if r.calls == nil {
			r.calls = map[int]openCall{}
		}
		r.calls[e.Index] = openCall{frame.Index, strings.TrimSpace(string(b.Input))}
		return frame
	case b.Type == blockText && b.Text != "":
		return r.asm.Text(b.Text)
	case b.Type == blockThinking && b.Thinking != "":
		return r.asm.Reasoning(b.Thinking)
	}
	return llm.Frame{}
}

// delta takes a piece in. Pieces of blocks that are no tool calls of ours, and
// kinds of pieces that are not known, are skipped.
func (r *reader) delta(e *event) (llm.Frame, error) {
	d := &e.Delta
	switch {
	case d.Text != "":
		return r.asm.Text(d.Text), nil
	case d.Thinking != "":
		return r.asm.Reasoning(d.Thinking), nil
	case d.PartialJSON != "":
		if call, ours := r.calls[e.Index]; ours {
			return r.asm.Arguments(call.index, d.PartialJSON), nil
		}
	}
	return llm.Frame{}, nil
}

func (r *reader) end(e *event) {
	if e.Usage != nil {
		r.usage.update(e.Usage)
	}
	if r.reason == "" && e.Delta.StopReason != "" {
		r.reason = e.Delta.StopReason
		r.resp.EndWithin(endGrace)
	}
}

// finishStream emits arguments that came whole with the beginning of their
// call, as some gateways send them.
func (r *reader) finishStream() error {
	r.resp.Done()
	for _, call := range r.calls {
		if len(call.input) <= len("{}") || call.input == "null" || r.asm.HasArguments(call.index) {
			continue
		}
		if err := r.emit(r.asm.Arguments(call.index, call.input)); err != nil {
			return err
		}
	}
	return nil
}
