package wire_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/wire"
)

const (
	keyCanary    = "keycanary0123456789abcdef"
	promptCanary = "promptcanary0123456789abcdef"
)

// echoing answers with what header and status say.
func echoing(t *testing.T, status int, header, value string) *wire.Response {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"code":"` + value + `","type":"` + value + `","message":"` + value + `"}}`))
	}))
	t.Cleanup(srv.Close)
	c := wire.New(wire.Config{Header: http.Header{"Authorization": {"Bearer " + keyCanary}}})
	t.Cleanup(c.Close)
	resp, err := c.Post(t.Context(), wire.Call{URL: srv.URL, Body: []byte(`{"model":"m-1","prompt":"` + promptCanary + `"}`)})
	require.NoError(t, err)
	t.Cleanup(resp.Close)
	return resp
}

func TestWhatWasSentIsNeverShown(t *testing.T) {
	for _, echo := range []string{keyCanary, promptCanary, keyCanary[4:20], promptCanary[3:]} {
		resp := echoing(t, 401, "X-Request-Id", echo)
		require.Empty(t, resp.RequestID(), echo)
		require.Empty(t, resp.CleanID(echo))
		require.Empty(t, resp.Version(echo, "m-1"))
		f := resp.Failure()
		require.NotContains(t, f.Error(), echo)
		require.Equal(t, provider.Failure{Outcome: f.Outcome, Status: 401}, *f)
	}
}

func TestWhatIsShownOfAProvider(t *testing.T) {
	require.Equal(t, "req_1", echoing(t, 500, "X-Request-Id", "req_1").Failure().RequestID)
	resp := echoing(t, 200, "X", "x")
	for name, want := range map[string]string{
		"m-1": "m-1", "m": "m", "m-1-2026-11-30": "m-1-2026-11-30", "vendor/m-1:latest": "vendor/m-1:latest",
		"two words": "", "line\nbreak": "", "": "", promptCanary: "",
	} {
		require.Equal(t, want, resp.Version(name, "m-1"), name)
	}
}
