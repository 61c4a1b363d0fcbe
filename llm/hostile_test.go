package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

func TestHostilePayloadsAreRefused(t *testing.T) {
	nested := func(open, end string, n int) string {
		return `{"prompt":"x","metadata":` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + `}`
	}
	for name, payload := range map[string]string{
		"no UTF-8 in text":     "{\"prompt\":\"\xff\"}",
		"no UTF-8 in messages": "{\"messages\":[{\"role\":\"user\",\"content\":\"\xc3\"}]}",
		"no UTF-8 in metadata": "{\"prompt\":\"x\",\"metadata\":\"\xed\xa0\x80\"}",
		"UTF-16":               "\xff\xfe{\x00}\x00",
		"NaN":                  `{"prompt":"x","temperature":NaN}`,
		"infinity":             `{"prompt":"x","temperature":Infinity}`,
		"beyond a float":       `{"prompt":"x","temperature":1e999}`,
		"beyond an integer":    `{"prompt":"x","seed":99999999999999999999}`,
		"a million lists":      nested("[", "]", 1_000_000),
		"a million objects":    nested(`{"a":`, "}", 1_000_000),
		"prompt and messages":  `{"prompt":"x","messages":[{"role":"user","content":"y"}]}`,
	} {
		_, err := llm.DecodeRequest([]byte(payload))
		require.ErrorIs(t, err, llm.ErrInvalidRequest, name)
		require.Less(t, len(err.Error()), 300, name)
	}
}

// TestTheLastOfTwoKeysCountsForAll keeps a payload from meaning one thing to a
// check here and another to the provider.
func TestTheLastOfTwoKeysCountsForAll(t *testing.T) {
	req, err := llm.DecodeRequest([]byte(`{"data_class":"public","messages":[{"role":"user","content":"first"}],"messages":[{"role":"user","content":"last"}],"data_class":"secret"}`))
	require.NoError(t, err)
	require.Equal(t, "secret", req.DataClass)
	require.Equal(t, "last", req.Messages[0].Content.Text())
	require.JSONEq(t, `[{"role":"user","content":"last"}]`, string(req.MessagesJSON()))

	req, err = llm.DecodeRequest([]byte(`{"messages":[{"role":"user","content":"first","content":"last"}]}`))
	require.NoError(t, err)
	require.Equal(t, "last", req.Messages[0].Content.Text())
	require.Nil(t, req.MessagesJSON(), "what is ambiguous is not passed on as it came")
}

// FuzzMessagesJSON checks that what is passed on as it came says the same as
// what was read.
func FuzzMessagesJSON(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"hi\u00e9","name":"n"},{"role":"tool","tool_call_id":"1","content":"x"}]`))
	f.Add([]byte(`[{"role":"user","content":"a","content":"b"},{"Role":"system"}]`))
	f.Fuzz(func(t *testing.T, messages []byte) {
		req, err := llm.DecodeRequest(append(append([]byte(`{"messages":`), messages...), '}'))
		if err != nil || req.MessagesJSON() == nil {
			return
		}
		var spliced []llm.Message
		require.NoError(t, json.Unmarshal(req.MessagesJSON(), &spliced))
		require.Equal(t, req.Messages, spliced)
		var fields []map[string]any
		require.NoError(t, json.Unmarshal(req.MessagesJSON(), &fields))
		for _, m := range fields {
			for name := range m {
				require.Contains(t, []string{"role", "content", "name", "tool_call_id"}, name)
			}
		}
	})
}
