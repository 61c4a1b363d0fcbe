package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC)
	const none = -1
	for name, tc := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"nothing":                  {nil, none},
		"seconds":                  {map[string]string{"Retry-After": "2"}, 2 * time.Second},
		"a fraction":               {map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		"zero":                     {map[string]string{"Retry-After": "0"}, 0},
		"blanks around":            {map[string]string{"Retry-After": " 3 "}, 3 * time.Second},
		"a day":                    {map[string]string{"Retry-After": "86400"}, 24 * time.Hour},
		"IMF date":                 {map[string]string{"Retry-After": "Wed, 23 Sep 2026 10:00:07 GMT"}, 7 * time.Second},
		"RFC 850 date":             {map[string]string{"Retry-After": "Wednesday, 23-Sep-26 10:00:07 GMT"}, 7 * time.Second},
		"asctime date":             {map[string]string{"Retry-After": "Wed Sep 23 10:00:07 2026"}, 7 * time.Second},
		"a date that has passed":   {map[string]string{"Retry-After": "Wed, 23 Sep 2026 09:00:00 GMT"}, 0},
		"milliseconds win":         {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "3"}, 1500 * time.Millisecond},
		"Azure's milliseconds":     {map[string]string{"X-Ms-Retry-After-Ms": "2200", "Retry-After": "3"}, 2200 * time.Millisecond},
		"the first form wins":      {map[string]string{"Retry-After-Ms": "1", "X-Ms-Retry-After-Ms": "2"}, time.Millisecond},
		"garbage falls through":    {map[string]string{"Retry-After-Ms": "soon", "Retry-After": "3"}, 3 * time.Second},
		"negative falls through":   {map[string]string{"Retry-After-Ms": "-5", "Retry-After": "3"}, 3 * time.Second},
		"garbage":                  {map[string]string{"Retry-After": "soon"}, none},
		"negative":                 {map[string]string{"Retry-After": "-1"}, none},
		"not a number":             {map[string]string{"Retry-After": "NaN"}, none},
		"infinite":                 {map[string]string{"Retry-After": "Inf"}, none},
		"longer than time can say": {map[string]string{"Retry-After": "1e300"}, none},
		"just too long":            {map[string]string{"Retry-After": "9223372037"}, none},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range tc.header {
				h.Set(k, v)
			}
			got, ok := RetryAfter(h, now)
			require.Equal(t, tc.want != none, ok)
			if ok {
				require.Equal(t, tc.want, got)
			}
		})
	}
}

func TestShouldRetry(t *testing.T) {
	for value, want := range map[string]*bool{"true": new(true), "TRUE": new(true), "false": new(false), "": nil, "maybe": nil} {
		require.Equal(t, want, shouldRetry(http.Header{"X-Should-Retry": {value}}))
	}
}
