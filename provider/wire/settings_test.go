package wire

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseBase(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.example.com":         "https://api.example.com",
		"https://api.example.com/":        "https://api.example.com",
		"http://localhost:8000/v1/":       "http://localhost:8000/v1",
		"http://[::1]:8000/openai/v1":     "http://[::1]:8000/openai/v1",
		"api.example.com":                 "",
		"ftp://api.example.com":           "",
		"https://":                        "",
		"https://:8080":                   "",
		"https://user:pass@example.com":   "",
		"https://example.com/?key=secret": "",
		"https://example.com/#secret":     "",
		"https://exa mple.com":            "",
		"https://exämple.com":             "",
		"":                                "",
	} {
		u, err := ParseBase(raw)
		if want == "" {
			require.ErrorContains(t, err, "base_url", raw)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "pass@")
			continue
		}
		require.NoError(t, err, raw)
		require.Equal(t, want, u.String())
	}
}

func TestCheckHeader(t *testing.T) {
	require.NoError(t, CheckHeader(http.Header{"X-Team": {"a", "b\tc"}, "Authorization": {"Bearer x"}}))
	for name, value := range map[string]string{
		"Idempotency-Key": "x", "x-idempotency-key": "x", "Content-Length": "1", "host": "h", "Accept-Encoding": "gzip",
		"": "x", "Bad Name": "x", "X-Bad": "line\nbreak",
	} {
		err := CheckHeader(http.Header{name: {value}})
		require.ErrorContains(t, err, "headers: ", name)
		require.NotContains(t, err.Error(), "line")
	}
}

func TestSecretHidesItself(t *testing.T) {
	type holder struct {
		Key Secret
		Ptr *Secret
	}
	key := Secret("sk-canary")
	h := holder{key, &key}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "key", key, "holder", h)
	encoded, err := json.Marshal(h)
	require.NoError(t, err)
	for _, text := range []string{
		fmt.Sprint(key), fmt.Sprintf("%s %q %x %d %v %+v %#v", key, key, key, key, h, h, h), string(encoded), logged.String(), key.GoString(),
	} {
		require.NotContains(t, text, "canary")
		require.NotContains(t, text, fmt.Sprintf("%x", "canary"))
	}
	require.Equal(t, "sk-canary", key.Reveal())
}
