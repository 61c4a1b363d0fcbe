package echo

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

// Label begins every answer, so that no one takes it for a model's.
const Label = "echo: "

// Provider echoes. The zero value is ready.
type Provider struct{}

var _ llm.Completer = Provider{}

// Capabilities of the echo: text, whole or in pieces.
func (Provider) Capabilities() provider.Capabilities { return provider.Capabilities{Streaming: true} }

// Complete repeats the last user message.
func (Provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if ctx.Err() != nil {
		return nil, provider.FromContext(ctx)
	}
	if err := supported(req); err != nil {
		return nil, err
	}
	words, finish := answer(req)
	return response(req, words, finish), nil
}

// Stream repeats the last user message word by word.
func (Provider) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		if err := supported(req); err != nil {
			yield(llm.Frame{}, err)
			return
		}
		words, finish := answer(req)
		for _, word := range words {
			if ctx.Err() != nil {
				yield(llm.Frame{}, provider.FromContext(ctx))
				return
			}
			if !yield(llm.Frame{Type: llm.FrameDelta, Text: word}, nil) {
				return
			}
		}
		yield(llm.Frame{Type: llm.FrameEnd, Response: response(req, words, finish)}, nil)
	}
}

func supported(req *llm.Request) error {
	switch {
	case req.JSONSchema != nil:
		return wire.Unsupported("a JSON schema")
	case req.ToolChoice != nil && req.ToolChoice.Mode != llm.ToolChoiceAuto && req.ToolChoice.Mode != llm.ToolChoiceNone:
		return wire.Unsupported("a forced tool call")
	}
	for _, m := range req.Messages {
		if slices.ContainsFunc(m.Content, func(p llm.Part) bool { return p.Type == llm.PartImage }) {
			return wire.Unsupported("an image")
		}
	}
	return nil
}

// answer is the words, one for each token that the request allows. The label
// is always whole.
func answer(req *llm.Request) ([]string, llm.FinishReason) {
	words := append([]string{Label}, strings.SplitAfter(lastUserText(req), " ")...)
	if req.MaxTokens > 0 && len(words) > req.MaxTokens {
		return words[:req.MaxTokens], llm.FinishLength
	}
	return words, llm.FinishStop
}

func lastUserText(req *llm.Request) string {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].Role == llm.RoleUser {
			return req.Messages[i].Content.Text()
		}
	}
	return ""
}

func response(req *llm.Request, words []string, finish llm.FinishReason) *llm.Response {
	var input int64
	for _, m := range req.Messages {
		input += int64(len(strings.Fields(m.Content.Text())))
	}
	return &llm.Response{
		Content: strings.Join(words, ""), Model: req.Model, ModelVersion: "echo", FinishReason: finish,
		Usage: &llm.Usage{InputTokens: &input, OutputTokens: new(int64(len(words))), Estimated: true},
	}
}
