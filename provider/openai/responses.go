package openai

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// responses reads the Responses API.
type responses struct{ *answer }

// responseEvent is an event of a stream; a whole answer is its Response alone.
type responseEvent struct {
	Type        string        `json:"type"`
	Delta       string        `json:"delta"`
	OutputIndex int           `json:"output_index"`
	Item        *outputItem   `json:"item"`
	Response    *responseBody `json:"response"`
	Object      string        `json:"object"`
}

type responseBody struct {
	Status     string          `json:"status"`
	Model      string          `json:"model"`
	Output     []outputItem    `json:"output"`
	Usage      *responsesUsage `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type outputItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments arguments       `json:"arguments"`
	Content   []outputContent `json:"content"`
	Summary   []outputContent `json:"summary"`
}

type outputContent struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

func (r *responses) take(event string, data []byte) error {
	var e responseEvent
	err := json.Unmarshal(data, &e)
	if _, lenient := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !lenient {
		if problem, ok := wire.ReadProblem(data); ok || event == "error" {
			return r.Resp.Classify(problem)
		}
		return r.broken()
	}
	switch cmp.Or(e.Type, event) {
	case "response.output_text.delta":
		r.Say(e.Delta)
	case "response.refusal.delta":
		return r.refusal(e.Delta)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return r.Think(e.Delta)
	case "response.output_item.added":
		if e.Item != nil && e.Item.Type == "function_call" {
			return r.callPiece(e.OutputIndex, e.Item)
		}
		return nil
	case "response.function_call_arguments.delta":
		return r.callPiece(e.OutputIndex, &outputItem{Arguments: arguments(e.Delta)})
	case "response.completed", "response.incomplete", "response.failed":
		return r.final(e.Response)
	case "":
		return r.body(data)
	case "error":
		problem, _ := wire.ReadProblem(data)
		return r.Resp.Classify(problem)
	}
	return nil
}

func (r *responses) callPiece(index int, item *outputItem) error {
	return r.calls.take(r.answer, &toolCall{
		Index: &index, ID: item.CallID, Function: function{Name: item.Name, Arguments: item.Arguments},
	})
}

// body takes an answer in one piece.
func (r *responses) body(data []byte) error {
	if problem, ok := wire.ReadProblem(data); ok {
		return r.Resp.Classify(problem)
	}
	body := new(responseBody)
	_ = json.Unmarshal(data, body) // take has seen that it is JSON
	if body.Status == "" {
		return nil
	}
	return r.final(body)
}

// final takes the answer that ends a stream, whose text has come before, or
// else is all there is.
func (r *responses) final(body *responseBody) error {
	if body == nil {
		return r.broken()
	}
	r.seen = true
	r.version = cmp.Or(body.Model, r.version)
	if known := body.Usage.neutral(); known != nil {
		r.usage = known
	}
	if body.Status == "failed" || body.Status == "cancelled" {
		return r.failedIn(body)
	}
	if r.Empty() && !r.refused {
		if err := r.output(body.Output); err != nil {
			return err
		}
	}
	r.finish = llm.FinishUnknown
	switch {
	case body.Status == "completed":
		r.finish = llm.FinishStop
	case body.Incomplete.Reason == "max_output_tokens":
		r.finish = llm.FinishLength
	case body.Incomplete.Reason == "content_filter":
		r.finish = llm.FinishContentFilter
	case body.Status == "in_progress", body.Status == "queued": // nothing will follow
		return r.broken()
	}
	return wire.ErrEnd // there is no [DONE], and the usage has come
}

func (r *responses) output(items []outputItem) error {
	for i := range items {
		item := &items[i]
		if item.Type == "function_call" {
			if err := r.callPiece(i, item); err != nil {
				return err
			}
		}
		for _, c := range append(item.Summary, item.Content...) {
			var err error
			switch c.Type {
			case "output_text":
				r.Say(c.Text)
			case "refusal":
				err = r.refusal(cmp.Or(c.Refusal, "-"))
			case "summary_text", "reasoning_text":
				err = r.Think(c.Text)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *responses) failedIn(body *responseBody) error {
	problem, ok := wire.ReadProblem([]byte(`{"error":` + string(body.Error) + `}`))
	if !ok {
		problem = wire.ProblemCode("server_error")
	}
	return r.Resp.Classify(problem)
}
