package vectors

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpectRequest(t *testing.T) {
	sent := Recorded{
		Method: "POST", Path: "/v1/x", Query: url.Values{"alt": {"sse"}}, Header: http.Header{"Accept": {"a/b"}},
		Body: []byte(`{"model":"m","max":5,"messages":[
			{"content":[{"type":"text","text":"hi"}]},
			{"tool_calls":[{"id":"AbC123xyz","function":{"arguments":"{\"a\": 1}"}}]},
			{"tool_call_id":"AbC123xyz","content":"4"}]}`),
	}
	for name, tc := range map[string]struct {
		expect string
		ok     bool
	}{
		"all that was sent":           {`{"method":"POST","path":"/v1/x","query":{"alt":"sse"},"headers":{"accept":"a/b"},"body":{"model":"m"},"absent":["tools","messages.0.name"]}`, true},
		"another path":                {`{"path":"/v2/x"}`, false},
		"another query":               {`{"query":{"alt":"json"}}`, false},
		"another header":              {`{"headers":{"accept":"c"}}`, false},
		"another value":               {`{"body":{"model":"n"}}`, false},
		"a missing key":               {`{"body":{"seed":1}}`, false},
		"a shorter list":              {`{"body":{"messages":[{}]}}`, false},
		"present but to be absent":    {`{"absent":["messages.1.tool_calls"]}`, false},
		"one text part is its text":   {`{"body":{"messages":[{"content":"hi"},{},{}]}}`, true},
		"its text is one text part":   {`{"body":{"messages":[{},{},{"content":[{"type":"text","text":"4"}]}]}}`, true},
		"no content beside calls":     {`{"body":{"messages":[{},{"content":null},{}]}}`, true},
		"arguments as JSON":           {`{"body":{"messages":[{},{"tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]},{}]}}`, true},
		"a number in range":           {`{"body":{"max":{"$type":"integer","$min":1}}}`, true},
		"a number too small":          {`{"body":{"max":{"$type":"integer","$min":6}}}`, false},
		"another type":                {`{"body":{"model":{"$type":"integer"}}}`, false},
		"one of several":              {`{"body":{"model":{"$in":["l","m"]}}}`, true},
		"none of several":             {`{"body":{"model":{"$in":["l"]}}}`, false},
		"bound and the same":          {`{"body":{"messages":[{},{"tool_calls":[{"id":{"$match":"^[A-Za-z0-9]{9}$","$bind":"x"}}]},{"tool_call_id":{"$bound":"x"}}]}}`, true},
		"matched by nothing":          {`{"body":{"model":{"$match":"^[0-9]+$"}}}`, false},
		"bound and something else":    {`{"body":{"model":{"$bound":"x"}}}`, false},
		"a schema is not an operator": {`{"body":{"model":{"$ref":"m"}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var e ExpectRequest
			require.NoError(t, json.Unmarshal([]byte(tc.expect), &e))
			if tc.ok {
				require.NoError(t, e.Check(sent))
			} else {
				require.Error(t, e.Check(sent))
			}
		})
	}
}

func TestAllCasesLoadAndMakeRequests(t *testing.T) {
	cases, err := Load("../../chain/testdata/vectors", func(*Vector) bool { return true })
	require.NoError(t, err)
	for _, v := range cases {
		_, err := v.LLM()
		require.NoError(t, err, v.Name)
	}
	_, err = Load(t.TempDir(), func(*Vector) bool { return true })
	require.Error(t, err)
}
