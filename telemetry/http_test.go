package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/llmbus/llmbus/telemetry"
)

// door is a server with one route, which says what traceparent it got.
func door(tel *telemetry.Telemetry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/{thing}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Header.Get("Traceparent"))
		_ = http.NewResponseController(w).Flush()
	})
	mux.HandleFunc("GET /cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return tel.HTTP(mux)
}

func TestHTTPIsMeasuredByRoute(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	h := door(tel)
	for _, path := range []string{"/v1/a", "/v1/b"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, nil))
		require.True(t, rec.Flushed, "what is below can be reached")
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/nosuch/"+secret, nil))
	require.Panics(t, func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/cut", nil)) })
	text := metrics(t, tel)
	for _, want := range []string{
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="418",http_route="/v1/{thing}",url_scheme="http"} 2`,
		`http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404",url_scheme="http"} 1`,
		`http_server_request_duration_seconds_count{error_type="aborted",http_request_method="GET",http_response_status_code="200",http_route="/cut",url_scheme="http"} 1`,
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, secret)
}

func TestHTTPHandsItsSpanOn(t *testing.T) {
	spans := &kept{}
	tel, err := telemetry.New(telemetry.Config{Spans: spans, Sample: new(0.0)})
	require.NoError(t, err)
	r, rec := httptest.NewRequest(http.MethodPost, "/v1/a", nil), httptest.NewRecorder()
	r.Header.Set("Traceparent", sampled)
	door(tel).ServeHTTP(rec, r)
	unsampled := httptest.NewRecorder()
	door(tel).ServeHTTP(unsampled, httptest.NewRequest(http.MethodPost, "/v1/a", nil))
	require.Panics(t, func() {
		r := httptest.NewRequest(http.MethodGet, "/cut", nil)
		r.Header.Set("Traceparent", sampled)
		door(tel).ServeHTTP(httptest.NewRecorder(), r)
	})
	require.NoError(t, tel.Shutdown(t.Context()))
	got := spans.GetSpans()
	require.Len(t, got, 2)
	require.Equal(t, "POST /v1/{thing}", got[0].Name)
	require.Equal(t, "418", valueOf(got[0], "http.response.status_code"))
	require.Equal(t, "00-"+traceID+"-"+got[0].SpanContext.SpanID().String()+"-01", rec.Body.String())
	require.Regexp(t, "^00-.*-00$", unsampled.Body.String(), "the worker is told not to sample, either")
	require.Equal(t, codes.Error, got[1].Status.Code)
	require.Equal(t, "aborted", valueOf(got[1], "error.type"))
}
