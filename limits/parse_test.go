package limits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What others write, or forge, is read without harm.
func FuzzHolders(f *testing.F) {
	f.Add([]byte(`{"held":{"w1":3,"w2":-1,"w3":0}}`))
	f.Add([]byte(`{"held":null}`))
	f.Add([]byte(`[1`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := parseHolders(data)
		require.NotNil(t, h.Held)
		for _, n := range h.Held {
			require.Positive(t, n)
		}
	})
}

func FuzzCount(f *testing.F) {
	f.Add([]byte(`{"stream":"S","seq":4,"val":"17"}`))
	f.Add([]byte(`{"error":{"code":400,"err_code":10169,"description":"message counter increment is missing"}}`))
	f.Add([]byte(`{"seq":4}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseCount(data); err != nil {
			require.Zero(t, r)
		}
	})
}

func TestMessages(t *testing.T) {
	for want, e := range map[string]Exceeded{
		"the tenant's limit of 600 requests a minute is reached; come back in 12.3s":                                       {Limit: Limit{Requests, Minute, 600}, RetryAfter: 12_345e6},
		"the tenant's limit of 60 requests an hour on feature support is reached; come back in 59m0s":                      {Limit: Limit{Requests, Hour, 60}, Feature: "support", RetryAfter: 3540e9 + 1},
		"the tenant's limit of 5000 tokens a day leaves too little for this request of about 1200; come back in 2h0m0s":    {Limit: Limit{Tokens, Day, 5000}, Wanted: 1200, RetryAfter: 7200e9},
		"the tenant's budget of $20 a day on feature support leaves too little for this request; the next begins in 1m30s": {Limit: Limit{USD, Day, 20 * NanoUSD}, Feature: "support", RetryAfter: 90e9},
		"the tenant's budget of $0.50 a day leaves too little for this request; the next begins in 1s":                     {Limit: Limit{USD, Day, NanoUSD / 2}, RetryAfter: 1e9},
		"the tenant's budget of $0.000025 a minute leaves too little for this request; the next begins in 1s":              {Limit: Limit{USD, Minute, 25_000}, RetryAfter: 1e9},
		"the tenant's limit of 50 requests at once is reached; come back when one has ended":                               {Limit: Limit{Kind: Concurrent, Amount: 50}, RetryAfter: 1e9},
	} {
		require.Equal(t, want, e.Error())
	}
}

func TestWindowsOfTenants(t *testing.T) {
	const now = int64(1_800_000_000e9) // 2027-01-15 08:00:00 UTC
	require.EqualValues(t, 16*3600e9, frameOf(Day, "acme").left(now), "days are those of UTC")
	require.Equal(t, frameOf(Day, "acme"), frameOf(Day, "globex"))
	require.NotEqual(t, frameOf(Minute, "acme").left(now), frameOf(Minute, "globex").left(now), "minutes are spread")
	for _, w := range Windows() {
		f := frameOf(w, "acme")
		end := now + int64(f.left(now))
		require.Equal(t, f.number(now)+1, f.number(end))
		require.Equal(t, f.number(now), f.number(end-1))
		require.EqualValues(t, f.length, f.left(end))
	}
	require.Zero(t, frameOf("", "acme").number(now), "one endless window")
}

// The clock goes on with local time between two readings, whatever the server's
// clock is ahead by.
func TestClock(t *testing.T) {
	var c clock
	require.False(t, c.known())
	local := c.now()
	require.Positive(t, local)
	asked := time.Now()
	c.set(asked.Add(-3e12), asked)
	require.InDelta(t, local-3e12, c.now(), 5e9)
}
