package llm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestMessagesJSONIsGivenOnlyWhereNothingElseIsInIt(t *testing.T) {
	for messages, given := range map[string]bool{
		`[{"role":"user","content":"hi"}]`:                                              true,
		`[ {"role":"system","content":"x"}, {"content":"é","role":"user","name":"n"} ]`: true,
		`[{"role":"tool","content":"x","tool_call_id":"1"}]`:                            true,
		`[{"role":"user","content":"\u00e9 \ud83d\ude00 \n"}]`:                          true,
		`[{"role":"user","content":"a lone \ud83d"}]`:                                   false,
		`[{"role":"user","content":"hi","name":"\ude00"}]`:                              false,
		`[{"role":"tool","content":"x","tool_call_id":"\uD800\ud800"}]`:                 false,
		`[{"role":"user","content":"hi","cache_control":{}}]`:                           false,
		`[{"role":"user","content":"hi","name":null}]`:                                  false,
		`[{"role":"user","content":"hi","content":"ho"}]`:                               false,
		`[{"role":"user","Content":"x","content":"hi"}]`:                                false,
		`[{"role":"user","content":[{"type":"text","text":"hi","x":1}]}]`:               false,
		`[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]}]`:      false,
	} {
		req, err := llm.DecodeRequest([]byte(`{"messages":` + messages + `}`))
		require.NoError(t, err, messages)
		if given {
			require.Equal(t, strings.TrimSpace(messages), string(req.MessagesJSON()))
		} else {
			require.Nil(t, req.MessagesJSON(), messages)
		}
	}
	req, err := llm.DecodeRequest([]byte(`{"prompt":"hi"}`))
	require.NoError(t, err)
	require.Nil(t, req.MessagesJSON())
}

func TestSchemasHoldNoHalfOfASurrogatePair(t *testing.T) {
	for raw, want := range map[string]string{
		`{"enum":["\ud83d\ude00"],"n":1e30}`: `{"enum":["😀"],"n":1e30}`,
		`{"enum":["a \uD83D"]}`:              "{\"enum\":[\"a \ufffd\"]}",
		`{"z":1,"a":"\u00e9"}`:               `{"z":1,"a":"\u00e9"}`,
	} {
		req, err := llm.DecodeRequest([]byte(`{"prompt":"x","tools":[{"type":"function","function":{"name":"f","parameters":` + raw + `}}],"json_schema":{"schema":` + raw + `}}`))
		require.NoError(t, err)
		require.Equal(t, want, string(req.Tools[0].Parameters))
		require.Equal(t, want, string(req.JSONSchema.Schema))
	}
}
