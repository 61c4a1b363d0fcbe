package providertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/wire"
	"github.com/llmbus/llmbus/provider/wire/http1"
)

// Body is a transport that answers every call with status 200 and itself,
// without a socket: for fuzzing and measuring what reads answers.
type Body string

var _ wire.Transport = Body("")

// Post never fails.
func (b Body) Post(context.Context, *http1.Endpoint, []byte) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(b)))}, nil
}

// Close does nothing.
func (b Body) Close() {}

// Ask asks one fixed question and holds the answer to what is true of all
// answers, good or bad.
func Ask(t testing.TB, c llm.Completer, stream bool) vectors.Result {
	t.Helper()
	v := &vectors.Vector{Name: "ask", Stream: stream}
	require.NoError(t, json.Unmarshal([]byte(`{"messages":[{"role":"user","content":"q"}]}`), &v.Request))
	return vectors.Ask(t, c, v)
}

// Seed adds the bodies of the recorded cases that keep accepts to a corpus of
// bodies and whether they are streams.
func Seed(f *testing.F, dir string, keep func(*vectors.Vector) bool) {
	f.Helper()
	cases, err := vectors.Load(dir, keep)
	require.NoError(f, err)
	for _, v := range cases {
		var body strings.Builder
		body.WriteString(v.Upstream.Body)
		for _, c := range v.Upstream.Chunks {
			body.WriteString(c.Data)
		}
		f.Add(body.String(), v.Stream)
	}
}
