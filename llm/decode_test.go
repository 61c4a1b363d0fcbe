package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestDecodeRequestTakes(t *testing.T) {
	hi := []llm.Message{{Role: llm.RoleUser, Content: llm.Text("hi")}}
	for name, tc := range map[string]struct {
		payload string
		want    llm.Request
	}{
		"prompt":         {`{"prompt":"hi"}`, llm.Request{Messages: hi}},
		"messages":       {`{"messages":[{"role":"user","content":"hi"}]}`, llm.Request{Messages: hi}},
		"parts":          {`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, llm.Request{Messages: hi}},
		"null fields":    {`{"prompt":"hi","messages":null,"tools":null,"seed":null}`, llm.Request{Messages: hi}},
		"null prompt":    {`{"prompt":null,"messages":[{"role":"user","content":"hi"}]}`, llm.Request{Messages: hi}},
		"one stop":       {`{"prompt":"hi","stop":"x"}`, llm.Request{Messages: hi, Stop: []string{"x"}}},
		"stops":          {`{"prompt":"hi","stop":["x","y"]}`, llm.Request{Messages: hi, Stop: []string{"x", "y"}}},
		"zero":           {`{"prompt":"hi","temperature":0,"seed":0}`, llm.Request{Messages: hi, Temperature: new(0.0), Seed: new(int64(0))}},
		"white space":    {" {\n\"prompt\" :\t\"hi\"} ", llm.Request{Messages: hi}},
		"opaque data":    {`{"prompt":"hi","metadata":{"a":[1]}}`, llm.Request{Messages: hi, Metadata: []byte(`{"a":[1]}`)}},
		"unknown":        {`{"prompt":"hi","b":1,"a":{}}`, llm.Request{Messages: hi, Warnings: []string{`unknown field "a" was ignored`, `unknown field "b" was ignored`}}},
		"tool mode":      {`{"prompt":"hi","tool_choice":"none"}`, llm.Request{Messages: hi, ToolChoice: &llm.ToolChoice{Mode: "none"}}},
		"bare schema":    {`{"prompt":"hi","json_schema":{"type":"object"}}`, llm.Request{Messages: hi, JSONSchema: &llm.JSONSchema{Schema: []byte(`{"type":"object"}`)}}},
		"named schema":   {`{"prompt":"hi","json_schema":{"name":"n","schema":true}}`, llm.Request{Messages: hi, JSONSchema: &llm.JSONSchema{Name: "n", Schema: []byte(`true`)}}},
		"no parameters":  {`{"prompt":"hi","tools":[{"type":"function","function":{"name":"f","parameters":null}}]}`, llm.Request{Messages: hi, Tools: []llm.Tool{{Name: "f"}}}},
		"brackets":       {`{"prompt":"` + strings.Repeat("[", 100) + `"}`, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(strings.Repeat("[", 100))}}}},
		"quoted bracket": {`{"prompt":"\"[\\"}`, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text(`"[\`)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := llm.DecodeRequest([]byte(tc.payload))
			require.NoError(t, err)
			require.Equal(t, &tc.want, got.WithoutText())
		})
	}
}

// refusals maps a payload to what its error must say.
var refusals = map[string]string{
	``:                 "the payload is empty",
	`x`:                "not valid JSON",
	`{"prompt":"hi"`:   "not valid JSON",
	`{"prompt":"hi"}x`: "not valid JSON",
	`[]`:               "must be a JSON object",
	`"hi"`:             "must be a JSON object",
	`null`:             "must be a JSON object with messages or prompt, not null",
	`{}`:               "messages must hold at least one message",
	`{"prompt":7}`:     "prompt must be a string, not number",
	`{"prompt":"a","messages":[{"role":"user","content":"b"}]}`: "prompt cannot go with messages",
	`{"messages":{}}`: "messages must be a list, not object",
	`{"messages":[{"role":"robot","content":"x"}]}`:                                                                    "messages[0].role must be system, user, assistant or tool",
	`{"messages":[{"role":"user"}]}`:                                                                                   "messages[0].content must be a string or a list of parts",
	`{"messages":[{"role":"user","content":7}]}`:                                                                       "content must be a string or a list of parts",
	`{"messages":[{"role":"user","content":[{"type":"x"}]}]}`:                                                          "messages[0].content[0].type must be text or image_url",
	`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`:                                                  "content[0].image_url.url must be",
	`{"messages":[{"role":"assistant"}]}`:                                                                              "content or tool_calls must be given",
	`{"messages":[{"role":"tool","content":"x"}]}`:                                                                     "tool_call_id must name the call",
	`{"messages":[{"role":"user","content":"x","tool_calls":[{"id":"1","function":{"name":"f"}}]}]}`:                   "tool_calls must be on an assistant message",
	`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]}`:                                     "tool_calls[0].id must not be empty",
	`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{}}]}]}`:                                      "tool_calls[0].function.name must not be empty",
	`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"x"}}]}]}`:            "arguments must be a JSON object as text",
	`{"prompt":"a","tools":[{"function":{"name":"f"}}]}`:                                                               `tools: type must be "function"`,
	`{"prompt":"a","tools":[{"type":"function","function":{"name":"a b"}}]}`:                                           "tools[0].function.name must be 1 to 64",
	`{"prompt":"a","tools":[{"type":"function","function":{"name":"f","parameters":[]}}]}`:                             "parameters must be a JSON schema object",
	`{"prompt":"a","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]}`: "tools[1].function.name must be unique",
	`{"prompt":"a","tool_choice":"required"}`:                                                                          "tool_choice must not be required without tools",
	`{"prompt":"a","tool_choice":"sometimes"}`:                                                                         "tool_choice must be auto, none, required",
	`{"prompt":"a","tool_choice":{"type":"function","function":{"name":"f"}}}`:                                         "must be one of the tools",
	`{"prompt":"a","json_schema":"x"}`:                                                                                 "json_schema must be a JSON schema",
	`{"prompt":"a","json_schema":{"name":"a b","schema":{}}}`:                                                          "json_schema.name must be 1 to 64",
	`{"prompt":"a","max_tokens":-1}`:                                                                                   "max_tokens must be 1 or more",
	`{"prompt":"a","max_tokens":0}`:                                                                                    "max_tokens must be 1 or more",
	`{"prompt":"a","max_tokens":1.5}`:                                                                                  "max_tokens must be a whole number, not number",
	`{"prompt":"a","temperature":2.1}`:                                                                                 "temperature must be a number from 0 to 2",
	`{"prompt":"a","temperature":"hot"}`:                                                                               "temperature must be a number, not string",
	`{"prompt":"a","top_p":0}`:                                                                                         "top_p must be a number above 0",
	`{"prompt":"a","stop":["a","b","c","d","e"]}`:                                                                      "stop must hold at most 4",
	`{"prompt":"a","stop":""}`:                                                                                         "stop[0] must not be empty",
	`{"prompt":"a","stop":7}`:                                                                                          "stop must be a list, not number",
	`{"prompt":"a","stream":"yes"}`:                                                                                    "stream must be true or false, not string",
	`{"prompt":"a","stream_to":"x"}`:                                                                                   "stream_to must be subject or reply",
	`{"prompt":"a","resumable":true}`:                                                                                  "resumable must go with stream",
	`{"prompt":"a","timeout_ms":0}`:                                                                                    "timeout_ms must be 1 or more",
	`{"prompt":"a","timeout_ms":86400001}`:                                                                             "timeout_ms must be from 1 to 86400000",
	`{"prompt":"a","class":"x"}`:                                                                                       "class must be interactive, background or structured",
	`{"prompt":"a","data_class":"` + strings.Repeat("x", 257) + `"}`:                                                   "data_class must be at most 256 bytes",
	`{"prompt":"a","idempotency_key":"` + strings.Repeat("x", 257) + `"}`:                                              "idempotency_key must be at most 256 bytes",
	`{"prompt":"a","metadata":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`:                              "nested deeper than 64 levels",
}

func TestDecodeRequestRefuses(t *testing.T) {
	for payload, want := range refusals {
		_, err := llm.DecodeRequest([]byte(payload))
		require.ErrorIs(t, err, llm.ErrInvalidRequest, payload)
		require.ErrorContains(t, err, want, payload)
	}
}

func TestDecodeErrorsQuoteNoValues(t *testing.T) {
	for _, payload := range []string{
		`{"prompt":987654321}`, `{"max_tokens":987654321.5}`, `{"messages":[{"role":"987654321","content":"x"}]}`,
		`{"tool_choice":"987654321","prompt":"a"}`, `{"stop":987654321}`, `{"messages":"987654321"}`, `{"stream":987654321}`,
	} {
		_, err := llm.DecodeRequest([]byte(payload))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "987654321")
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var fields strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&fields, `,"%s%d":1`, strings.Repeat("é", 100), i)
	}
	req, err := llm.DecodeRequest([]byte(`{"prompt":"a"` + fields.String() + `}`))
	require.NoError(t, err)
	require.Len(t, req.Warnings, 17)
	require.Equal(t, "984 more unknown fields were ignored", req.Warnings[16])
	require.Less(t, len(req.Warnings[0]), 128)
}
