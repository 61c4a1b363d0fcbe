package llm_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// TestGolden compares each wire type with the file that the documentation
// quotes. UPDATE_GOLDEN=1 writes the files anew.
func TestGolden(t *testing.T) {
	for name, value := range goldens() {
		t.Run(name, func(t *testing.T) {
			wire, err := json.Marshal(value)
			require.NoError(t, err)
			var pretty bytes.Buffer
			require.NoError(t, json.Indent(&pretty, wire, "", "  "))
			pretty.WriteByte('\n')
			path := filepath.Join("testdata", name+".json")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(path, pretty.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), pretty.String())
		})
	}
}

// TestGoldenRequestsDecodeToThemselves shows that what we write we also read.
func TestGoldenRequestsDecodeToThemselves(t *testing.T) {
	for name, value := range goldens() {
		wire, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(t, err)
		switch want := value.(type) {
		case *llm.Request:
			got, err := llm.DecodeRequest(wire)
			require.NoError(t, err, name)
			wantWire, err := json.Marshal(want)
			require.NoError(t, err)
			gotWire, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, string(wantWire), string(gotWire))
			require.Empty(t, got.Warnings)
		case *llm.Frame:
			got, err := llm.DecodeFrame(wire)
			require.NoError(t, err, name)
			if want.Type != llm.FrameEnd {
				require.Equal(t, *want, got)
			}
		case *llm.Response:
			_, err := llm.DecodeReply(wire)
			require.NoError(t, err, name)
		}
	}
}

func goldens() map[string]any {
	response := answer()
	sent := *response
	sent.Content, sent.ToolCalls = "", nil
	failed := &llm.Error{
		Code: llm.CodeUnavailable, Message: "no target could serve", RetryAfterMS: 1500, Degraded: true,
		Attempts: []llm.Attempt{{Provider: "openai", Model: "gpt-4.1", Class: llm.OutcomeConnect, MS: 12}},
	}
	return map[string]any{
		"request_full": fullRequest(),
		"request_tool_result": &llm.Request{Messages: []llm.Message{
			{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}}},
			{Role: llm.RoleTool, ToolCallID: "call_1", Content: llm.Text("sunny")},
		}},
		"response":        response,
		"response_cached": &llm.Response{ID: "9f", Content: "Yesterday's answer", ServedBy: llm.ServedByFallback, Fallback: llm.FallbackCached, Stale: true},
		"response_queued": &llm.Response{ID: "9f", ServedBy: llm.ServedByFallback, Fallback: llm.FallbackQueued,
			Job: &llm.Job{ID: "K2JQX", Result: "llm.results.K2JQX"}},
		"response_replayed": &llm.Response{ID: "9f", Content: "Hello", Provider: "openai", Model: "gpt-4.1", FinishReason: llm.FinishStop,
			ServedBy: llm.ServedByModel, Replayed: true, Timing: llm.Timing{TotalMS: 4}},
		"error":           failed,
		"frame_start":     &llm.Frame{Seq: 1, Attempt: 1, Type: llm.FrameStart, Provider: "openai", Model: "gpt-4.1"},
		"frame_delta":     &llm.Frame{Seq: 2, Attempt: 1, Type: llm.FrameDelta, Text: "Hel"},
		"frame_tool_call": &llm.Frame{Seq: 3, Attempt: 1, Type: llm.FrameToolCall, ID: "call_1", Name: "weather", Arguments: `{"city"`},
		"frame_ping":      &llm.Frame{Seq: 4, Attempt: 1, Type: llm.FramePing},
		"frame_end":       &llm.Frame{Seq: 5, Attempt: 1, Type: llm.FrameEnd, Response: &sent},
		"frame_error":     &llm.Frame{Seq: 5, Attempt: 2, Type: llm.FrameError, Error: failed},
	}
}

func fullRequest() *llm.Request {
	return &llm.Request{
		Messages: []llm.Message{
			{Role: llm.RoleSystem, Content: llm.Text("Be brief.")},
			{Role: llm.RoleUser, Name: "ann", Content: llm.Content{
				{Type: llm.PartText, Text: "What is this?"},
				{Type: llm.PartImage, Image: &llm.ImageURL{URL: "https://example.com/a.png", Detail: "low"}},
			}},
		},
		Tools: []llm.Tool{{
			Name: "weather", Description: "The weather now", Strict: new(true),
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
		}},
		ToolChoice:        &llm.ToolChoice{Mode: llm.ToolChoiceNamed, Name: "weather"},
		ParallelToolCalls: new(false),
		JSONSchema:        &llm.JSONSchema{Name: "answer", Schema: json.RawMessage(`{"type":"object"}`), Strict: new(true)},
		MaxTokens:         256, Temperature: new(0.2), TopP: new(0.9), Stop: []string{"END"}, Seed: new(int64(7)),
		Stream: true, StreamTo: llm.StreamToSubject, Resumable: true, TimeoutMS: 20000, Class: llm.ClassInteractive, DataClass: "public",
		IdempotencyKey: "order-17", NoFailover: true, Metadata: json.RawMessage(`{"trace":"abc"}`),
	}
}

func answer() *llm.Response {
	return &llm.Response{
		ID: "9f", Content: "Hello", Provider: "openai", Model: "gpt-4.1", FinishReason: llm.FinishToolCalls,
		ToolCalls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}},
		JSON:      json.RawMessage(`{"ok":true}`),
		Usage: &llm.Usage{
			InputTokens: new(int64(12)), OutputTokens: new(int64(3)), CachedInputTokens: new(int64(8)), ReasoningTokens: new(int64(0)),
		},
		CostUSD: 0.00042, ServedBy: llm.ServedByModel,
		Attempts: []llm.Attempt{
			{Provider: "anthropic", Model: "claude-sonnet-4", Class: llm.OutcomeOverloaded, HTTPStatus: 529, MS: 80},
			{Provider: "openai", Model: "gpt-4.1", Class: llm.OutcomeOK, HTTPStatus: 200, MS: 410, FirstTokenMS: 120, CostUSD: 0.00042},
		},
		Timing:   llm.Timing{FirstTokenMS: 205, TotalMS: 492},
		Metadata: json.RawMessage(`{"trace":"abc"}`), Warnings: []string{`unknown field "x" was ignored`},
	}
}
