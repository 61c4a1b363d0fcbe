package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScannerAgreesWithTheStandardLibrary(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{}`, `[]`, ` [ ] `, `{"a":1,"b":[true,false,null]}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{1:2}`,
		`"`, `"a`, `"a"b`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u1234"`, "\"\x1f\"", "\"\x7f\"", "\"\xff\"", `"é𝄞"`, `"1234567\"9"`, `"12345678"`, `"\\"`, `"\\\"`,
		`0`, `-0`, `01`, `-`, `1.`, `.5`, `1.5e`, `1e+`, `1E-7`, `1e5x`, `+1`, `NaN`, `tru`, `nul`, `falsey`, `{"a":"b"}}`, `[[[`, "\ufeff{}", "\v1",
	} {
		s := scanner{data: []byte(text)}
		require.Equal(t, json.Valid([]byte(text)), s.value(0) && s.at == len(text), "%q", text)
	}
}

func TestMessagesJSONIsGivenOnlyWhereNothingElseIsInIt(t *testing.T) {
	for messages, given := range map[string]bool{
		`[{"role":"user","content":"hi"}]`:                                              true,
		`[ {"role":"system","content":"x"}, {"content":"é","role":"user","name":"n"} ]`: true,
		`[{"role":"tool","content":"x","tool_call_id":"1"}]`:                            true,
		`[{"role":"user","content":"hi","cache_control":{}}]`:                           false,
		`[{"role":"user","content":"hi","name":null}]`:                                  false,
		`[{"role":"user","content":"hi","content":"ho"}]`:                               false,
		`[{"role":"user","Content":"x","content":"hi"}]`:                                false,
		`[{"role":"user","content":[{"type":"text","text":"hi","x":1}]}]`:               false,
		`[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]}]`:      false,
	} {
		req, err := DecodeRequest([]byte(`{"messages":` + messages + `}`))
		require.NoError(t, err, messages)
		if given {
			require.Equal(t, strings.TrimSpace(messages), string(req.MessagesJSON()))
		} else {
			require.Nil(t, req.MessagesJSON(), messages)
		}
	}
	req, err := DecodeRequest([]byte(`{"prompt":"hi"}`))
	require.NoError(t, err)
	require.Nil(t, req.MessagesJSON())
}

func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"messages":[{"role":"user","content":"a\u00e9\"b"}]}`, `[1,-2.5e3,"\\",{}]`, `"12345678\n"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := scanner{data: data}
		ok := s.value(0) && s.at == len(data)
		if s.deep {
			return
		}
		require.Equal(t, json.Valid(data), ok, "%q", data)
		if !ok {
			return
		}
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(data, &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		found, _ := eachMember(data, func(key string, value []byte) error {
			got[key] = value
			return nil
		})
		require.Equal(t, isObject, found)
		if isObject {
			require.Equal(t, len(want), len(got))
			for key, value := range want {
				require.Equal(t, string(value), string(got[key]))
			}
		}
		var text string
		if first(data) == '"' && json.Unmarshal(data, &text) == nil {
			require.Equal(t, text, unquote([]byte(strings.Trim(string(data), " \t\r\n"))))
		}
	})
}
