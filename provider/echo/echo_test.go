package echo_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/echo"
)

func ask(text string) *llm.Request {
	return &llm.Request{Model: "echo", Messages: []llm.Message{
		{Role: llm.RoleSystem, Content: llm.Text("be brief")}, {Role: llm.RoleUser, Content: llm.Text(text)},
	}}
}

func TestCompleteRepeatsTheLastUserMessageLabelled(t *testing.T) {
	resp, err := echo.Provider{}.Complete(t.Context(), ask("why is the sky blue"))
	require.NoError(t, err)
	require.Equal(t, "echo: why is the sky blue", resp.Content)
	require.Equal(t, llm.FinishStop, resp.FinishReason)
	require.True(t, resp.Usage.Estimated)
	require.EqualValues(t, 7, *resp.Usage.InputTokens)
	require.EqualValues(t, 6, *resp.Usage.OutputTokens)
}

func TestStreamGivesWordsThatMakeUpTheAnswer(t *testing.T) {
	req := ask("why is the sky blue")
	req.MaxTokens = 3
	var text strings.Builder
	var end *llm.Response
	for frame, err := range (echo.Provider{}).Stream(t.Context(), req) {
		require.NoError(t, err)
		text.WriteString(frame.Text)
		end = frame.Response
	}
	require.Equal(t, "echo: why is ", text.String())
	require.Equal(t, text.String(), end.Content)
	require.Equal(t, llm.FinishLength, end.FinishReason)
}

func TestWhatItCannotDoIsRefused(t *testing.T) {
	withSchema, withTool := ask("hi"), ask("hi")
	withSchema.JSONSchema = &llm.JSONSchema{Schema: json.RawMessage(`{}`)}
	withTool.ToolChoice = &llm.ToolChoice{Mode: llm.ToolChoiceRequired}
	withImage := ask("hi")
	withImage.Messages[1].Content = llm.Content{{Type: llm.PartImage, Image: &llm.ImageURL{URL: "https://a.example/b.png"}}}
	for _, req := range []*llm.Request{withSchema, withTool, withImage} {
		_, err := echo.Provider{}.Complete(t.Context(), req)
		require.Equal(t, provider.DetailUnsupported, provider.AsFailure(err).Detail)
		for _, err := range (echo.Provider{}).Stream(t.Context(), req) {
			require.Equal(t, llm.OutcomeInvalidRequest, provider.AsFailure(err).Outcome)
		}
	}
}

func TestAnEndedContextIsObeyed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := echo.Provider{}.Complete(ctx, ask("hi"))
	require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(err).Outcome)
	for _, err := range (echo.Provider{}).Stream(ctx, ask("hi")) {
		require.Equal(t, llm.OutcomeCancelled, provider.AsFailure(err).Outcome)
	}
}
