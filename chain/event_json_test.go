package chain

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every field is written, and as encoding/json writes it.
func TestEventsAreWrittenAsTheStandardLibraryDoes(t *testing.T) {
	full := Event{Time: time.Date(2026, 1, 2, 3, 4, 5, 60_700, time.FixedZone("", 3600))}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("a \"b\" \u2028 é <" + v.Type().Field(i).Name)
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Float64:
			f.SetFloat(0.0000125)
		}
		require.False(t, v.Field(i).IsZero(), "%s: give it a value here", v.Type().Field(i).Name)
	}
	for _, e := range []Event{full, {Name: EventRequestStarted, Time: time.Unix(1, 0).UTC()}} {
		want, err := json.Marshal(e)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(e.AppendJSON(nil)))
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	e := Event{Name: EventRequestSucceeded, Time: time.Now(), RequestID: "SVRBIZL6L4ZSRJBQXZWDIOK2JA", Feature: "support", Provider: "openai", Model: "gpt-5", Class: "ok", Attempts: 1, MS: 812}
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendJSON(buf[:0])
	}
}
