package scan

import (
	"bytes"
	"encoding/json"
	"errors"
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
		require.Equal(t, json.Valid([]byte(text)), Check([]byte(text)) == nil, "%q", text)
	}
}

func TestDepthIsBounded(t *testing.T) {
	require.NoError(t, Check([]byte(strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth))))
	require.ErrorIs(t, Check([]byte(strings.Repeat(`{"a":`, MaxDepth+1)+"1"+strings.Repeat("}", MaxDepth+1))), ErrDepth)
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"messages":[{"role":"user","content":"a\u00e9\"b"}]}`, `[1,-2.5e3,"\\",{}]`, `"12345678\n"`, `"\"\\\/\b\f\n\r\t\b"`, `"é\n\ud83d\ude00"`, `{"a\\\\":"b\"\\","c":"\"\\\""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data)
		if errors.Is(err, ErrDepth) {
			return
		}
		require.Equal(t, json.Valid(data), err == nil, "%q", data)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(data, &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		found, _ := Members(data, func(key, value []byte) error {
			got[string(key)] = value
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
		if raw := bytes.Trim(data, " \t\r\n"); raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
			require.Equal(t, text, Unquote(raw))
		}
	})
}
