package gateway

import (
	"strconv"

	"github.com/llmbus/llmbus/llm"
)

// toolCall is a chunk with a piece of a tool call. The first piece of a call
// names it.
func (e *events) toolCall(f *llm.Frame) []byte {
	e.begin()
	e.buf = append(e.buf, `{"index":0,"delta":{"tool_calls":[{"index":`...)
	e.buf = strconv.AppendInt(e.buf, int64(f.Index), 10)
	if f.ID != "" || f.Name != "" {
		e.buf = append(e.buf, `,"id":`...)
		e.buf = llm.AppendString(e.buf, f.ID)
		e.buf = append(e.buf, `,"type":"function","function":{"name":`...)
		e.buf = llm.AppendString(e.buf, f.Name)
		e.buf = append(e.buf, `,"arguments":`...)
	} else {
		e.buf = append(e.buf, `,"function":{"arguments":`...)
	}
	e.buf = llm.AppendString(e.buf, f.Arguments)
	e.buf = append(e.buf, `}}]},"logprobs":null,"finish_reason":null}`...)
	e.finish()
	return e.buf
}

// last is the chunk with the reason of the end, the one with the usage if it was
// asked for, and the terminator.
func (e *events) last(resp *llm.Response) ([]byte, error) {
	e.begin()
	e.buf = append(e.buf, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	e.buf = append(e.buf, finish(resp)...)
	e.buf = append(e.buf, `"}],"llmbus":`...)
	var err error
	if e.buf, err = appendExtra(e.buf, resp); err != nil {
		return nil, err
	}
	if e.chat.withUsage {
		e.buf = append(e.buf, `,"usage":null}`...)
		e.buf = append(e.buf, "\n\n"...)
		e.buf = append(e.buf, e.head...)
		e.buf = append(e.buf, `],"usage":`...)
		e.buf = appendUsage(e.buf, resp.Usage)
	}
	e.buf = append(e.buf, "}\n\ndata: [DONE]\n\n"...)
	return e.buf, nil
}
