package breaker

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRecordGolden(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := machine{Settings: Settings{}.withDefaults(), worker: "worker-1"}
	v := view{state: Closed, generation: 2}
	step := func(e event) { v, _ = m.next(v, e, at) }
	var got strings.Builder
	keep := func() {
		data, err := json.Marshal(v.record(at))
		require.NoError(t, err)
		back, err := DecodeRecord(data)
		require.NoError(t, err)
		require.Equal(t, v.record(at), back)
		got.Write(append(data, '\n'))
	}
	for range 5 {
		step(failed{v.epoch, "timeout"})
	}
	keep()
	at = v.until
	step(asked{})
	step(won{v.epoch})
	keep()
	at = at.Add(30 * time.Second)
	step(probed{epoch: v.epoch, kind: Neutral})
	keep()
	at = v.until
	step(asked{})
	step(won{v.epoch})
	step(probed{epoch: v.epoch, kind: Success})
	keep()
	step(cooled{90 * time.Second, "rate_limited"})
	keep()
	want, err := os.ReadFile("testdata/records.jsonl")
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

func TestDecodeRecord(t *testing.T) {
	for _, bad := range []string{"", "open", "null", "[]", `{}`, `{"state":"OPEN"}`, `{"state":"open","cool_down_ms":-1}`, `{"state":"open","wait_ms":-1}`, `{"state":"open","generation":-1}`} {
		_, err := DecodeRecord([]byte(bad))
		require.Error(t, err, bad)
	}
	r, err := DecodeRecord([]byte(`{"state":"open","why":"` + strings.Repeat("x", 999) + `","cool_down_ms":9223372036854775807,"new":1}`))
	require.NoError(t, err)
	require.Equal(t, longestWait, r.coolDown())
	require.Len(t, r.Why, maxText)
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"state":"half_open","generation":3,"wait_ms":31000}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRecord(data)
		if err != nil {
			return
		}
		m := machine{Settings: Settings{}.withDefaults(), luck: 1}
		now := time.Now()
		v, _ := m.next(view{state: Closed}, learned{r, 1, now}, now)
		require.Equal(t, r.State, v.state)
		require.LessOrEqual(t, v.until.Sub(now), longestWait*11/10)
	})
}
