package openai_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/openai"
)

// Servers answer in whichever form they like; the body decides.
func TestEitherRequestMayGetEitherForm(t *testing.T) {
	const (
		body   = "\n" + `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
		events = "data: " + word + "\n\ndata: " + finish + "\n\n" + done
		page   = "<!DOCTYPE html><html></html>"
		fault  = `[{"error":{"code":429,"message":"x"}}]`
	)
	for name, tc := range map[string]struct {
		body    string
		streams bool
		want    llm.Outcome
	}{
		"events for a plain request": {events, false, llm.OutcomeOK},
		"a body for a stream":        {body, true, llm.OutcomeOK},
		"a body, mislabelled":        {body, false, llm.OutcomeOK},
		"a page for a stream":        {page, true, llm.OutcomeUnavailable},
		"a list around an error":     {fault, true, llm.OutcomeRateLimited},
		"no choices at all":          {`{"choices":null}`, false, llm.OutcomeUnavailable},
		"no choice among none":       {`{"choices":[]}`, false, llm.OutcomeInvalidOutput},
		"null":                       {`null`, false, llm.OutcomeUnavailable},
		"a body without a reason":    {`{"choices":[{"message":{"content":"hi"}}]}`, false, llm.OutcomeOK},
	} {
		t.Run(name, func(t *testing.T) {
			server := vectors.Serve(t, &vectors.Upstream{Status: 200, Headers: map[string]string{"Content-Type": "text/plain"}, Body: tc.body})
			p, err := openai.New(openai.Config{BaseURL: server.URL})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			v := &vectors.Vector{Name: "x", Stream: tc.streams}
			require.NoError(t, v.Ask("hi"))
			got := vectors.Ask(t, p, v)
			require.Equal(t, tc.want, got.Class())
			if tc.want == llm.OutcomeOK {
				require.Equal(t, "hi", got.Response.Content)
			}
		})
	}
}
