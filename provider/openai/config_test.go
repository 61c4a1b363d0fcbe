package openai

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsThatCannotApplyAreRefusedByName(t *testing.T) {
	for key, cfg := range map[string]Config{
		"base_url":         {BaseURL: "ftp://x"},
		"azure":            {Azure: &Azure{}},
		"api":              {API: "telepathy"},
		"family":           {Family: "smith"},
		"max_tokens_field": {MaxTokensField: "tokens"},
		"no_stream_usage":  {API: APIResponses, NoStreamUsage: true},
		"connect_timeout":  {ConnectTimeout: -1},
		"max_idle_conns":   {MaxIdleConns: -1},
		"headers":          {Headers: http.Header{"Idempotency-Key": {"x"}}},
		"Authorization":    {APIKey: "line\nbreak"},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, key)
		require.NotContains(t, err.Error(), "break")
	}
}

func TestURLs(t *testing.T) {
	for want, cfg := range map[string]Config{
		"https://api.openai.com/v1/chat/completions":                                      {},
		"https://api.openai.com/v1/responses":                                             {API: APIResponses},
		"https://api.groq.com/openai/v1/chat/completions":                                 {BaseURL: "https://api.groq.com/openai/v1/"},
		"http://localhost:8000/v1/chat/completions":                                       {BaseURL: "http://localhost:8000"},
		"https://r.example/openai/v1/chat/completions":                                    {BaseURL: "https://r.example", Azure: &Azure{}},
		"https://r.example/openai/deployments/my%20m%2F1/chat/completions?api-version=v1": {BaseURL: "https://r.example/", Azure: &Azure{APIVersion: "v1"}},
		"https://r.example/openai/responses?api-version=v1":                               {BaseURL: "https://r.example", Azure: &Azure{APIVersion: "v1"}, API: APIResponses},
	} {
		p, err := New(cfg)
		require.NoError(t, err)
		require.Equal(t, want, p.url("my m/1"))
	}
}

func TestHeaders(t *testing.T) {
	cfg := Config{APIKey: "k", Organization: "o", Project: "p", Headers: http.Header{"x-team": {"t"}}}
	require.Equal(t, http.Header{
		"Authorization": {"Bearer k"}, "Openai-Organization": {"o"}, "Openai-Project": {"p"}, "X-Team": {"t"},
	}, cfg.header())
	cfg = Config{APIKey: "k", Azure: &Azure{}}
	require.Equal(t, http.Header{"Api-Key": {"k"}}, cfg.header())
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), `"k"`)
}

func TestCapabilities(t *testing.T) {
	require.True(t, (&Config{}).Capabilities().JSONSchema)
	require.False(t, (&Config{API: APIResponses}).Capabilities().Seed)
	require.False(t, (&Config{Family: FamilyCompatible}).Capabilities().Vision)
}
