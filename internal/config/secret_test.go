package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/config"
)

func TestKeysInHeadersAreRefusedAndNotQuoted(t *testing.T) {
	for _, name := range []string{"Authorization", "x-api-key", "API-Key", "X-Goog-Api-Key", "Proxy-Authorization", "Cookie"} {
		_, _, err := config.Parse("f.yaml", []byte("providers: {p: {kind: openai, base_url: http://x, headers: {"+name+": canary}}}\nfeatures: {f: {targets: [{provider: p, model: m}]}}\n"))
		require.ErrorContains(t, err, "api_key_env", name)
		require.NotContains(t, err.Error(), "canary")
	}
}
