package fleet

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// busy is a Watch that has heard two minutes of 50 features, without NATS.
func busy(tb testing.TB) (*Watch, []byte) {
	tb.Helper()
	w, err := New(Config{Conn: &nats.Conn{}})
	require.NoError(tb, err)
	now := time.Now()
	w.begin(now.Add(-kept * time.Second))
	for second := range kept {
		for i := range 50 {
			w.take(&Event{Name: "request_succeeded", RequestID: "r", Feature: fmt.Sprintf("f%d", i), Provider: "p", Model: "m", MS: int64(i * i), FirstTokenMS: 40},
				now.Add(time.Duration(second-kept)*time.Second))
		}
	}
	return w, []byte(`{"event":"request_succeeded","time":"2026-11-30T08:23:40.820706531Z","request_id":"4MPJG2BGYFVAUI6M3KYQEO7WTD","feature":"f1",` +
		`"provider":"backup","model":"model-b","class":"ok","attempts":1,"ms":840,"first_token_ms":210,"cost_usd":0.00124,"worker":"vm-20006-lQmq"}`)
}

// BenchmarkHear is what one request of the fleet costs whoever watches.
func BenchmarkHear(b *testing.B) {
	w, data := busy(b)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		e, err := DecodeEvent(data)
		require.NoError(b, err)
		w.take(e, now)
	}
}

// BenchmarkView is what one picture a second costs, for all who look.
func BenchmarkView(b *testing.B) {
	w, _ := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		data, err := json.Marshal(w.View())
		require.NoError(b, err)
		b.ReportMetric(float64(len(data)), "bytes")
	}
}
