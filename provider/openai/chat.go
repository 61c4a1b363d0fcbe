package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
)

// chat reads Chat Completions.
type chat struct{ *answer }

// completion is a whole answer or a chunk of one.
type completion struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Groq    *struct {
		Usage *chatUsage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index        int      `json:"index"`
	Message      *message `json:"message"`
	Delta        *message `json:"delta"`
	FinishReason string   `json:"finish_reason"`
}

// message is one in whole, or a delta.
type message struct {
	Content          content    `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent string     `json:"reasoning_content"` // DeepSeek, vLLM
	Reasoning        string     `json:"reasoning"`         // OpenRouter, Groq, Ollama, newer vLLM
	ToolCalls        []toolCall `json:"tool_calls"`
	FunctionCall     *function  `json:"function_call"` // before there were tools
}

// content is a string, or with Mistral a list of parts.
type content struct{ text, thinking string }

// UnmarshalJSON takes both forms and ignores others.
func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		c.text = unquote(data)
		return nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     string  `json:"text"`
		Thinking content `json:"thinking"`
	}
	_ = json.Unmarshal(data, &parts)
	for _, p := range parts {
		c.text += p.Text
		c.thinking += p.Thinking.text
	}
	return nil
}

// unquote decodes a JSON string; anything else is "". Most pieces of a stream
// need no decoding, and are not worth a second pass through encoding/json.
func unquote(data []byte) (s string) {
	if len(data) >= 2 && data[0] == '"' && bytes.IndexByte(data, '\\') < 0 {
		return strings.ToValidUTF8(string(data[1:len(data)-1]), "\uFFFD")
	}
	_ = json.Unmarshal(data, &s)
	return s
}

func (c *chat) take(event string, data []byte) error {
	if body, ok := plainAnswer(data); ok && event == "" {
		return c.takeCompletion(&body)
	}
	var body completion
	err := json.Unmarshal(data, &body)
	if _, lenient := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !lenient {
		if problem, ok := wire.ReadProblem(data); ok || event == "error" {
			return c.Resp.Classify(problem) // an array around an error, or a bare sentence
		}
		return c.broken()
	}
	if event == "error" || body.reports() {
		if problem, ok := wire.ReadProblem(data); ok || event == "error" {
			return c.Resp.Classify(problem)
		}
	}
	return c.takeCompletion(&body)
}

// reports reports whether the body may be an error: some servers send an error
// field that is null in every chunk.
func (b *completion) reports() bool {
	return len(b.Error) > 0 && string(b.Error) != "null" || b.Object == "error" || len(b.Choices) == 0 && b.Usage == nil
}

func (c *chat) takeCompletion(body *completion) error {
	c.seen = c.seen || body.Choices != nil
	c.version = cmp.Or(body.Model, c.version)
	usage := body.Usage
	if usage == nil && body.Groq != nil {
		usage = body.Groq.Usage
	}
	if known := usage.neutral(); known != nil {
		c.usage = known
	}
	for i := range body.Choices {
		if body.Choices[i].Index != 0 {
			continue // only one answer was asked for
		}
		if err := c.takeChoice(&body.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *chat) takeChoice(ch *choice) error {
	if ch.Delta != nil {
		if err := c.takeMessage(ch.Delta); err != nil {
			return err
		}
	} else if ch.Message != nil {
		for i := range ch.Message.ToolCalls {
			ch.Message.ToolCalls[i].Index = new(i) // each is a call in whole
		}
		if err := c.takeMessage(ch.Message); err != nil {
			return err
		}
	}
	switch ch.FinishReason {
	case "":
		return nil
	case "error":
		return c.Resp.Classify(wire.ProblemCode("server_error"))
	case "insufficient_system_resource":
		return c.Resp.Classify(wire.ProblemCode(ch.FinishReason))
	}
	c.finish = finishReason(ch.FinishReason)
	return nil
}

func (c *chat) takeMessage(m *message) error {
	thinking := m.Content.thinking
	for _, other := range []string{m.ReasoningContent, m.Reasoning} {
		if thinking == "" {
			thinking = other // some servers send the same words in two fields
		}
	}
	if err := c.Think(thinking); err != nil {
		return err
	}
	c.Say(m.Content.text)
	if err := c.refusal(m.Refusal); err != nil {
		return err
	}
	for i := range m.ToolCalls {
		if err := c.calls.take(c.answer, &m.ToolCalls[i]); err != nil {
			return err
		}
	}
	if m.FunctionCall != nil {
		return c.calls.take(c.answer, &toolCall{Function: *m.FunctionCall})
	}
	return nil
}

func finishReason(s string) llm.FinishReason {
	switch s {
	case "stop", "eos", "stop_sequence":
		return llm.FinishStop
	case "length", "max_tokens", "model_length":
		return llm.FinishLength
	case "tool_calls", "function_call":
		return llm.FinishToolCalls
	case "content_filter":
		return llm.FinishContentFilter
	}
	return llm.FinishOther
}
