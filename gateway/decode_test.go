package gateway_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/llm"
)

const messages = `"messages":[{"role":"user","content":"hi"}]`

// TestTranslation shows what the bus gets of a body.
func TestTranslation(t *testing.T) {
	for name, tc := range map[string]struct {
		body, want string
		warnings   []string
	}{
		"least":      {`{"model":"f",` + messages + `}`, `{` + messages + `}`, nil},
		"null":       {`{"model":"f",` + messages + `,"n":null,"stop":null,"functions":null,"tools":null,"max_tokens":null}`, `{` + messages + `}`, nil},
		"one choice": {`{"model":"f",` + messages + `,"n":1}`, `{` + messages + `}`, nil},
		"sampling": {`{"model":"f",` + messages + `,"temperature":0,"top_p":0.5,"stop":"x","seed":7,"max_completion_tokens":9}`,
			`{` + messages + `,"temperature":0,"top_p":0.5,"stop":["x"],"seed":7,"max_tokens":9}`, nil},
		"max_tokens": {`{"model":"f",` + messages + `,"max_tokens":9}`, `{` + messages + `,"max_tokens":9}`, nil},
		"developer": {`{"model":"f","messages":[{"role":"developer","content":"be \"developer\""},{"content":"hi","role":"user"},{"role":"developer","content":[{"type":"text","text":"b"}]}]}`,
			`{"messages":[{"role":"system","content":"be \"developer\""},{"role":"user","content":"hi"},{"role":"system","content":"b"}]}`, nil},
		"image": {`{"model":"f","messages":[{"role":"user","content":[{"type":"text","text":"what"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"what"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}}]}]}`, nil},
		"tools": {`{"model":"f",` + messages + `,"tools":[{"type":"function","function":{"name":"w","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"w"}},"parallel_tool_calls":false}`,
			`{` + messages + `,"tools":[{"type":"function","function":{"name":"w","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"w"}},"parallel_tool_calls":false}`, nil},
		"an answer put back": {`{"model":"f","messages":[{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"w","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}]}`,
			`{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"w","arguments":"{}"}}]},{"role":"tool","content":"ok","tool_call_id":"c"}]}`, nil},
		"text": {`{"model":"f",` + messages + `,"response_format":{"type":"text"}}`, `{` + messages + `}`, nil},
		"json_object": {`{"model":"f",` + messages + `,"response_format":{"type":"json_object"}}`,
			`{` + messages + `,"json_schema":{"name":"answer","schema":{"type":"object"}}}`, nil},
		"json_schema": {`{"model":"f",` + messages + `,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"array"}}}}`,
			`{` + messages + `,"json_schema":{"name":"a","strict":true,"schema":{"type":"array"}}}`, nil},
		"stream": {`{"model":"f",` + messages + `,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}`, `{` + messages + `,"stream":true}`, nil},
		"ignored": {`{"model":"f",` + messages + `,"user":"u","store":true,"metadata":{"a":"b"},"modalities":["text"],"presence_penalty":1,"prompt":"x","timeout_ms":5}`, `{` + messages + `}`,
			[]string{`field "presence_penalty" has no effect here`, `field "prompt" has no effect here`, `field "timeout_ms" has no effect here`}},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := gateway.DecodeChat([]byte(tc.body))
			require.NoError(t, err)
			require.Equal(t, "f", req.Feature)
			require.Equal(t, tc.warnings, req.Warnings)
			wire, err := json.Marshal(req)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(wire))
		})
	}
}

func TestRefusedBodies(t *testing.T) {
	for _, tc := range []struct{ body, message, param string }{
		{`{`, "the body is not valid JSON", ""},
		{"{\"model\":\"f\",\"user\":1,\"messages\":\"\xff\"}", "the body is not valid UTF-8", ""},
		{`[]`, "the body must be a JSON object with model and messages", ""},
		{`{"messages":[]}`, "model must be the name of a feature; GET /v1/models lists them", "model"},
		{`{"model":1}`, "model must be a string", "model"},
		{`{"model":"f"}`, "messages must hold at least one message", "messages"},
		{`{"model":"f","messages":[{"role":"function","name":"x","content":"y"}]}`, "messages[0].role must be system, user, assistant or tool", "messages[0].role"},
		{`{"model":"f","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, "messages[0].content[0].type must be text or image_url", "messages[0].content[0].type"},
		{`{"model":"f",` + messages + `,"n":2}`, "n must be 1; send as many requests as you want answers", "n"},
		{`{"model":"f",` + messages + `,"functions":[]}`, "functions are no longer taken; send tools", "functions"},
		{`{"model":"f",` + messages + `,"function_call":"auto"}`, "function_call is no longer taken; send tool_choice", "function_call"},
		{`{"model":"f",` + messages + `,"audio":{"voice":"x"}}`, "audio is not served; leave it out", "audio"},
		{`{"model":"f",` + messages + `,"modalities":["text","audio"]}`, `modalities must be ["text"]`, "modalities"},
		{`{"model":"f",` + messages + `,"temperature":3}`, "temperature must be a number from 0 to 2", "temperature"},
		{`{"model":"f",` + messages + `,"max_completion_tokens":0}`, "max_completion_tokens must be 1 or more; leave it out for the default", "max_completion_tokens"},
		{`{"model":"f",` + messages + `,"max_completion_tokens":"x"}`, "max_completion_tokens must be a whole number, not string", "max_completion_tokens"},
		{`{"model":"f",` + messages + `,"max_tokens":1,"max_completion_tokens":1}`, "max_tokens cannot go with max_completion_tokens; send the second alone", "max_tokens"},
		{`{"model":"f",` + messages + `,"stream_options":{"include_usage":true}}`, "stream_options must go with stream", "stream_options"},
		{`{"model":"f",` + messages + `,"stream":true,"stream_options":1}`, "stream_options must be an object", "stream_options"},
		{`{"model":"f",` + messages + `,"response_format":{"type":"xml"}}`, "response_format.type must be text, json_object or json_schema", "response_format.type"},
		{`{"model":"f",` + messages + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema.schema must be a JSON schema", "response_format.json_schema.schema"},
		{`{"model":"f",` + messages + `,"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}}`,
			"response_format.json_schema.name must be 1 to 64 of A-Z, a-z, 0-9, _ and -", "response_format.json_schema.name"},
		{`{"model":"f",` + messages + `,"tools":[{"type":"custom","custom":{"name":"x"}}]}`, `tools: type must be "function"`, "tools"},
		{`{"model":"f",` + messages + `,"tool_choice":"required"}`, "tool_choice must not be required without tools", "tool_choice"},
	} {
		t.Run(tc.message, func(t *testing.T) {
			_, err := gateway.DecodeChat([]byte(tc.body))
			e, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, llm.CodeInvalidRequest, e.Code)
			require.Equal(t, tc.message, e.Message)
			require.Equal(t, tc.param, gateway.ParamOf(e.Message))
		})
	}
	require.Empty(t, gateway.ParamOf("the payload is empty"))
	require.Equal(t, "response_format", gateway.ParamOf("json_schema: too much work"))
}

func TestModelsThatAreNoFeatures(t *testing.T) {
	for _, model := range []string{"gpt-4.1", "Support", "a/b", "../../x"} {
		_, err := gateway.DecodeChat([]byte(`{"model":"` + model + `",` + messages + `}`))
		require.ErrorIs(t, err, llm.ErrUnknownFeature)
	}
}

// FuzzDecodeChat demands of every body a request that the bus's own decoder
// takes, or an error of the caller's.
func FuzzDecodeChat(f *testing.F) {
	for _, seed := range []string{
		`{"model":"f",` + messages + `}`, `{"model":"f","messages":[{"role":"developer","content":"x"}],"n":1,"stop":["a"],"stream":true,"stream_options":{}}`,
		`{"model":"f",` + messages + `,"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"tools":[{"type":"function","function":{"name":"a"}}]}`,
		`{"model":"f","messages":"developer"}`, `{"model":"f","messages":["developer"]}`, `{"\u006dodel":"f","messages":[{"r\u006fle":"\u0064eveloper","content":"developer"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := gateway.DecodeChat(body)
		if err != nil {
			e, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok)
			require.Contains(t, []llm.Code{llm.CodeInvalidRequest, llm.CodeUnknownFeature}, e.Code)
			return
		}
		wire, err := json.Marshal(req)
		require.NoError(t, err)
		_, err = llm.DecodeRequest(wire)
		require.NoError(t, err)
	})
}
