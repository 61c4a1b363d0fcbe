package llm

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// fill gives every field of a struct a value, and every pointer and list one
// element.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
	case reflect.String:
		v.SetString(`a "b" é <` + v.Type().Name())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 64)
	case reflect.Uint8:
		v.SetUint('1')
	}
}

// A field that is added to Response, Attempt or Usage must be written by hand,
// too, or be among those that make an answer not plain.
func TestPlainAnswersAreWrittenAsTheStandardLibraryDoes(t *testing.T) {
	var full Response
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	require.False(t, full.plain())
	full.ToolCalls, full.JSON, full.Job, full.Metadata, full.Warnings = nil, nil, nil, nil, nil
	for _, r := range []Response{full, {}, {Usage: &Usage{}}, {Usage: &Usage{Estimated: true}, Timing: Timing{TotalMS: 3}}, {CostUSD: 0.00000015}} {
		require.True(t, r.plain())
		want, err := json.Marshal(r)
		require.NoError(t, err)
		got, err := r.AppendReply([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, byte('x'), got[0])
		require.JSONEq(t, string(want), string(got[1:]))
	}
}

func BenchmarkAppendReply(b *testing.B) {
	r := Response{ID: "SVRBIZL6L4ZSRJBQXZWDIOK2JA", Provider: "openai", Model: "gpt-5", FinishReason: FinishStop, ServedBy: ServedByModel,
		Usage: &Usage{InputTokens: new(int64(250)), OutputTokens: new(int64(200))}, Attempts: []Attempt{{Provider: "openai", Model: "gpt-5", Class: OutcomeOK, MS: 800}}}
	for range 200 {
		r.Content += " token"
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = r.AppendReply(buf[:0])
	}
}
