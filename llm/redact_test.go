package llm_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestNothingThatIsLoggedHoldsAPromptOrACompletion(t *testing.T) {
	const secret = "canary"
	call := llm.ToolCall{ID: "1", Name: "f", Arguments: secret}
	message := llm.Message{Role: llm.RoleUser, Content: llm.Text(secret), ToolCalls: []llm.ToolCall{call}}
	response := &llm.Response{ID: "1", Content: secret, ToolCalls: []llm.ToolCall{call}, JSON: []byte(secret), Reasoning: secret}
	for name, value := range map[string]any{
		"request":  &llm.Request{ID: "1", Messages: []llm.Message{message}, Metadata: []byte(secret)},
		"message":  message,
		"content":  message.Content,
		"call":     call,
		"response": response,
		"frame":    llm.Frame{Seq: 1, Type: llm.FrameEnd, Text: secret, Arguments: secret, Response: response},
	} {
		var text, json bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&json, nil)).Info("x", "value", value)
		require.NotContains(t, text.String(), secret, name)
		require.NotContains(t, json.String(), secret, name)
	}
}

func TestFrameKinds(t *testing.T) {
	for f, want := range map[*llm.Frame][3]bool{ // visible, progress, terminal
		{Type: llm.FrameStart}:            {},
		{Type: llm.FramePing}:             {},
		{Type: llm.FrameDelta}:            {},
		{Type: llm.FrameDelta, Text: "a"}: {true, true, false},
		{Type: llm.FrameToolCall}:         {false, true, false},
		{Type: llm.FrameReasoning}:        {false, true, false},
		{Type: llm.FrameEnd}:              {false, false, true},
		{Type: llm.FrameError}:            {false, false, true},
	} {
		require.Equal(t, want, [3]bool{f.Visible(), f.Progress(), f.Terminal()}, "%s %q", f.Type, f.Text)
	}
}

func TestContentParts(t *testing.T) {
	parts := llm.Content{{Type: llm.PartText, Text: "a"}, {Type: llm.PartImage, Image: &llm.ImageURL{URL: "data:image/png;base64,eA=="}}, {Type: llm.PartText, Text: "b"}}
	require.Equal(t, "ab", parts.Text())
	media, data, ok := parts[1].Image.Data()
	require.True(t, ok)
	require.Equal(t, []string{"image/png", "eA=="}, []string{media, data})
	_, _, ok = (&llm.ImageURL{URL: "https://example.com/a.png"}).Data()
	require.False(t, ok)
}
