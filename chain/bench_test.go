package chain_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// instant answers at once and keeps no account of it, unlike the scripted fake.
type instant struct{}

const quickFrames = 100

func (instant) Complete(context.Context, *llm.Request) (*llm.Response, error) {
	return &llm.Response{Content: "word", FinishReason: llm.FinishStop}, nil
}

func (instant) Stream(context.Context, *llm.Request) iter.Seq2[llm.Frame, error] {
	return func(yield func(llm.Frame, error) bool) {
		for range quickFrames {
			if !yield(llm.Frame{Type: llm.FrameDelta, Text: "word"}, nil) {
				return
			}
		}
		yield(llm.Frame{Type: llm.FrameEnd, Response: &llm.Response{Content: "word", FinishReason: llm.FinishStop}}, nil)
	}
}

// quickRouter has a feature with so many targets, of which the first answers.
func quickRouter(b *testing.B, targets int) *chain.Router {
	b.Helper()
	group, err := breaker.New(breaker.Config{})
	require.NoError(b, err)
	f := chain.Feature{Name: "f", Class: llm.ClassInteractive, Timeout: 10 * time.Second}
	for i := range targets {
		name := fmt.Sprint("p", i)
		f.Targets = append(f.Targets, chain.Target{Provider: name, Model: "m", Completer: instant{}, Can: able, Attempts: 1,
			Breaker: group.Breaker(subjects.BreakerKey(name, "m"), breaker.Settings{})})
	}
	r := chain.NewRouter(chain.Config{Switches: &switches{}})
	r.Load([]chain.Feature{f})
	return r
}

func BenchmarkComplete(b *testing.B) {
	for _, targets := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint("targets=", targets), func(b *testing.B) {
			r, req := quickRouter(b, targets), ask()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Complete(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	r, req := quickRouter(b, 1), ask()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range r.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/quickFrames, "ns/frame")
}
