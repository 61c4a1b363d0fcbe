package anthropic

import (
	"testing"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/provider"
	"github.com/stretchr/testify/require"
)

// TestVectors plays every recorded shape of the API's behaviour.
func TestVectors(t *testing.T) {
	cases, err := vectors.Load(vectors.Dir("../../chain/testdata/vectors"), func(v *vectors.Vector) bool { return v.Provider == "anthropic" })
	require.NoError(t, err)
	for _, v := range cases {
		t.Run(v.Name, func(t *testing.T) {
			server := vectors.Serve(t, &v.Upstream)
			p, err := New(Config{BaseURL: server.URL, APIKey: "test-key-1", ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now})
			require.NoError(t, err)
			defer p.Close()

			v.CheckAdapter(t, vectors.Ask(t, &provider.Timed{Inner: p, Limit: v.Timeouts.Limits()}, v))
			if v.Upstream.Expect != nil {
				require.Len(t, server.Requests(), 1)
				require.NoError(t, v.Upstream.Expect.Check(server.Requests()[0]))
			}
		})
	}
}
