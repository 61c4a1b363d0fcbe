package openai_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/vectors"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/openai"
)

// spoken are the cases of the servers that this adapter speaks to.
func spoken(v *vectors.Vector) bool {
	switch v.Provider {
	case "openai", "azure", "openai-compatible":
		return true
	}
	return v.API == "openai"
}

// settings are what an operator would write for the server of a case.
func settings(v *vectors.Vector, url string) openai.Config {
	cfg := openai.Config{BaseURL: url, APIKey: "test-key-1", ConnectTimeout: v.Timeouts.Connect(), Now: v.Now.Now}
	if v.API == "responses" {
		cfg.API = openai.APIResponses
	}
	switch v.Provider {
	case "azure":
		cfg.Azure = &openai.Azure{APIVersion: "2024-10-21"}
	case "gemini":
		cfg.BaseURL, cfg.Family = url+"/v1beta/openai", openai.FamilyCompatible
	case "openai-compatible", "ollama":
		cfg.Family = openai.FamilyCompatible
	}
	if v.Variant == "mistral" {
		cfg.Family = openai.FamilyMistral
	}
	return cfg
}

func TestVectors(t *testing.T) {
	cases, err := vectors.Load(vectors.Dir("../../chain/testdata/vectors"), spoken)
	require.NoError(t, err)
	for _, v := range cases {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			server := vectors.Serve(t, &v.Upstream)
			p, err := openai.New(settings(v, server.URL))
			require.NoError(t, err)
			t.Cleanup(p.Close)

			got := vectors.Ask(t, &provider.Timed{Inner: p, Limit: v.Timeouts.Limits()}, v)

			v.CheckAdapter(t, got)
			if v.Upstream.Fault == "refuse" {
				return
			}
			requests := server.Requests()
			require.Len(t, requests, 1, "one call on the wire")
			if v.Upstream.Expect != nil {
				require.NoError(t, v.Upstream.Expect.Check(requests[0]))
			}
		})
	}
}
