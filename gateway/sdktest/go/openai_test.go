package sdktest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

const (
	words = "This is a simulated answer from a provider that does as its"
	slow  = "sim-ok-t600-g50ms"
)

// once never retries, patient does as the SDK does by itself.
func once() openai.Client    { return openai.NewClient(option.WithMaxRetries(0)) }
func patient() openai.Client { return openai.NewClient() }

func hello(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("Be brief."), openai.UserMessage("hello")},
	}
}

func weather() openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{}},
	})
}

type stats struct {
	Calls     map[string]int `json:"calls"`
	Cancelled map[string]int `json:"cancelled"`
}

func simulator(t *testing.T) (s stats) {
	t.Helper()
	resp, err := http.Get(os.Getenv("SIM_URL") + "/stats")
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&s))
	return s
}

// fails demands an error of the API.
func fails(t *testing.T, err error, status int, code string) *openai.Error {
	t.Helper()
	var failure *openai.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, status, failure.StatusCode)
	require.Equal(t, code, failure.Code)
	return failure
}

func TestPlain(t *testing.T) {
	client, params := once(), hello("chat")
	params.MaxCompletionTokens, params.Temperature, params.TopP = openai.Int(100), openai.Float(0.2), openai.Float(0.9)
	params.Seed, params.N, params.Stop = openai.Int(7), openai.Int(1), openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"END"}}
	var raw *http.Response
	got, err := client.Chat.Completions.New(t.Context(), params, option.WithResponseInto(&raw))
	require.NoError(t, err)
	require.Equal(t, words, got.Choices[0].Message.Content)
	require.Equal(t, "stop", got.Choices[0].FinishReason)
	require.Equal(t, "sim-ok", got.Model)
	require.EqualValues(t, 12, got.Usage.CompletionTokens)
	require.Equal(t, got.Usage.PromptTokens+12, got.Usage.TotalTokens)
	require.Equal(t, []string{"sim", "model"}, []string{raw.Header.Get("x-llmbus-provider"), raw.Header.Get("x-llmbus-served-by")})
	require.Equal(t, got.ID, "chatcmpl-"+raw.Header.Get("x-request-id"))
}

func TestImage(t *testing.T) {
	client, params := once(), hello("chat")
	params.Messages = append(params.Messages, openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart("what is this?"),
		openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64,iVBORw0KGgo=", Detail: "low"}),
	}))
	got, err := client.Chat.Completions.New(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, words, got.Choices[0].Message.Content)
}

func TestStream(t *testing.T) {
	client, params := once(), hello("chat")
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, whole.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, words, whole.Choices[0].Message.Content)
	require.Equal(t, "stop", whole.Choices[0].FinishReason)
	require.EqualValues(t, 12, whole.Usage.CompletionTokens)
}

func TestTools(t *testing.T) {
	client, params := once(), hello("tools")
	params.Tools = []openai.ChatCompletionToolUnionParam{weather()}
	got, err := client.Chat.Completions.New(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, "tool_calls", got.Choices[0].FinishReason)
	call := got.Choices[0].Message.ToolCalls[0]
	require.Equal(t, []string{"weather", "{}"}, []string{call.Function.Name, call.Function.Arguments})

	after := hello("chat")
	after.Tools = params.Tools
	after.Messages = append(after.Messages, got.Choices[0].Message.ToParam(), openai.ToolMessage("sunny", call.ID))
	got, err = client.Chat.Completions.New(t.Context(), after)
	require.NoError(t, err)
	require.Equal(t, words, got.Choices[0].Message.Content)

	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "weather", whole.Choices[0].Message.ToolCalls[0].Function.Name)
}

func TestStructured(t *testing.T) {
	client, params := once(), hello("json")
	params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "order", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"item", "count"},
			"properties": map[string]any{"item": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}},
		},
	}}
	got, err := client.Chat.Completions.New(t.Context(), params)
	require.NoError(t, err)
	require.JSONEq(t, `{"item":"simulated","count":1}`, got.Choices[0].Message.Content)
}

func TestModels(t *testing.T) {
	client := once()
	list, err := client.Models.List(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	require.Contains(t, ids, "chat")
	_, err = client.Models.Get(t.Context(), "gpt-4.1")
	fails(t, err, 404, "model_not_found")
}

func TestBadRequests(t *testing.T) {
	client, params := patient(), hello("chat")
	params.N = openai.Int(2)
	_, err := client.Chat.Completions.New(t.Context(), params)
	failure := fails(t, err, 400, "invalid_request")
	require.Equal(t, []string{"n", "invalid_request_error"}, []string{failure.Param, failure.Type})
	_, err = client.Chat.Completions.New(t.Context(), hello("gpt-4.1"))
	fails(t, err, 404, "model_not_found")
	_, err = client.Chat.Completions.New(t.Context(), hello("chat"), option.WithAPIKey("llmbus_wrong"))
	fails(t, err, 401, "invalid_api_key")
}

func TestRetries(t *testing.T) {
	client := patient()
	_, err := client.Chat.Completions.New(t.Context(), hello("go-down"))
	fails(t, err, 503, "unavailable")
	require.Equal(t, 3, simulator(t).Calls["sim-502"])

	before := simulator(t).Calls["sim-401"]
	_, err = client.Chat.Completions.New(t.Context(), hello("misconfigured"))
	fails(t, err, 502, "provider_auth")
	require.Equal(t, before+1, simulator(t).Calls["sim-401"])
	_, err = client.Chat.Completions.New(t.Context(), hello("off"))
	fails(t, err, 503, "switched_off")

	began := time.Now()
	got, err := client.Chat.Completions.New(t.Context(), hello("go-limited"))
	require.NoError(t, err)
	require.Equal(t, words, got.Choices[0].Message.Content)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, 2, simulator(t).Calls["sim-first-1-status-429-retry-1"])

	_, err = client.Chat.Completions.New(t.Context(), hello("slow"), option.WithHeader("x-llmbus-timeout-ms", "200"))
	fails(t, err, 504, "deadline")
}

func TestBrokenStream(t *testing.T) {
	client := once()
	stream := client.Chat.Completions.NewStreaming(t.Context(), hello("cut"))
	text := ""
	for stream.Next() {
		text += stream.Current().Choices[0].Delta.Content
	}
	require.ErrorContains(t, stream.Err(), "interrupted")
	require.Equal(t, "This is a simulated", text)
}

func TestCancel(t *testing.T) {
	client, before := once(), simulator(t).Cancelled[slow]
	ctx, leave := context.WithCancel(t.Context())
	stream := client.Chat.Completions.NewStreaming(ctx, hello("slow"))
	require.True(t, stream.Next())
	leave()
	for stream.Next() { // what came before
	}
	require.ErrorIs(t, stream.Err(), context.Canceled)
	require.Eventually(t, func() bool { return simulator(t).Cancelled[slow] > before }, time.Second, 10*time.Millisecond)
}
