package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Reasons why an answer is refused. They say nothing of its text.
var (
	errToolName = errors.New("the model called a tool that was not offered")
	errToolArgs = errors.New("the arguments of a tool call are not a JSON object")
	errNotJSON  = errors.New("the answer is not one JSON value")
	errSchema   = errors.New("the answer does not fit the schema")
)

// validate judges whether an answer is what the request asked for. Nothing is
// repaired but, where the feature says so, one Markdown fence around JSON.
func (r *run) validate(resp *llm.Response) error {
	err := checkToolCalls(r.req, resp)
	if err == nil && r.req.JSONSchema != nil && len(resp.ToolCalls) == 0 {
		err = r.checkJSON(resp)
	}
	if err == nil {
		return nil
	}
	f := provider.Fail(llm.OutcomeInvalidOutput, err)
	f.Usage, f.Finish = resp.Usage, resp.FinishReason
	if resp.FinishReason == llm.FinishLength {
		f.Detail = provider.DetailLengthCut
	}
	r.emit(EventOutputInvalid, r.served)
	return f
}

// checkToolCalls demands that every call names an offered tool and that its
// arguments are a JSON object; empty arguments are the empty object.
func checkToolCalls(req *llm.Request, resp *llm.Response) error {
	for i := range resp.ToolCalls {
		call := &resp.ToolCalls[i]
		if !offered(req.Tools, call.Name) {
			return errToolName
		}
		if strings.TrimSpace(call.Arguments) == "" {
			call.Arguments = "{}"
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(call.Arguments), &object); err != nil || object == nil {
			return errToolArgs
		}
	}
	return nil
}

func offered(tools []llm.Tool, name string) bool {
	for i := range tools {
		if tools[i].Name == name {
			return true
		}
	}
	return false
}

// checkJSON demands one JSON value that fits the schema, and sets resp.JSON.
func (r *run) checkJSON(resp *llm.Response) error {
	text := resp.Content
	if r.feature.Repair == RepairFence {
		text = stripFence(text)
	}
	if err := r.env.schemas.judge(r.req.JSONSchema.Schema, text); err != nil {
		return err
	}
	resp.Content, resp.JSON = text, json.RawMessage(text)
	return nil
}

// decodeOne reads text that holds exactly one JSON value. Numbers keep their
// digits, so that a schema judges what the model wrote.
func decodeOne(text string) (any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return value, nil
}

// stripFence removes one Markdown code fence if it encloses the whole text.
func stripFence(text string) string {
	inner := strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(inner, "```")
	if !ok {
		return inner
	}
	info, body, ok := strings.Cut(rest, "\n")
	if !ok || strings.ContainsAny(info, "`{[\"") {
		return inner
	}
	if body, ok = strings.CutSuffix(strings.TrimSpace(body), "```"); !ok {
		return inner
	}
	return strings.TrimSpace(body)
}
