package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/config"
)

func TestKeysDoNotTravelInTheClear(t *testing.T) {
	const (
		refused = "base_url: would send the key in the clear; use https, or set allow_http: true if the network is trusted"
		useless = "allow_http: has no effect without a key and a base_url of http:// to another machine; remove it"
	)
	for settings, want := range map[string]string{
		"kind: openai, base_url: http://h, api_key_env: K":                             refused,
		"kind: openai, base_url: http://h/v1, api_key_file: /k":                        refused,
		"kind: anthropic, base_url: 'http://10.0.0.1:80', api_key_env: K":              refused,
		"kind: gemini, base_url: http://localhost.example, api_key_env: K":             refused,
		"kind: ollama, base_url: http://h, api_key_env: K":                             refused,
		"kind: openai, base_url: http://h, api_key_env: K, allow_http: true":           "",
		"kind: openai, base_url: https://h, api_key_env: K":                            "",
		"kind: openai, base_url: http://h":                                             "",
		"kind: openai, base_url: 'http://127.0.0.1:8000', api_key_env: K":              "",
		"kind: openai, base_url: 'http://[::1]:8000', api_key_env: K":                  "",
		"kind: openai, base_url: http://localhost, api_key_env: K":                     "",
		"kind: openai, base_url: https://h, api_key_env: K, allow_http: true":          useless,
		"kind: openai, base_url: http://h, allow_http: true":                           useless,
		"kind: openai, base_url: http://localhost, api_key_env: K, allow_http: true":   useless,
		"kind: openai, base_url: 'http://user:pw@h', api_key_env: K, allow_http: true": "base_url: must hold no credentials; set the API key instead",
		"kind: openai, base_url: 'ftp://h', api_key_env: K":                            "base_url: must begin with http:// or https://",
		"kind: openai, base_url: 'file:///etc/passwd'":                                 "base_url: must begin with http:// or https://",
	} {
		_, _, err := config.Parse("f.yaml", []byte("providers: {p: {"+settings+"}}\nfeatures: {f: {targets: [{provider: p, model: m}]}}\n"))
		if want == "" {
			require.NoError(t, err, settings)
			continue
		}
		require.ErrorContains(t, err, want, settings)
		require.NotContains(t, err.Error(), "pw@")
	}
}

func TestAnAddressFromTheEnvironmentIsJudgedToo(t *testing.T) {
	_, _, err := config.Default(config.Found{OpenAI: config.Service{KeyEnv: "OPENAI_API_KEY", BaseURL: "http://h", Model: "m"}})
	require.ErrorContains(t, err, "in the clear")
}
