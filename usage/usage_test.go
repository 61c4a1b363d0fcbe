package usage_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/usage"
)

func TestConfigNamesWhatIsMissing(t *testing.T) {
	_, err := usage.New(usage.Config{})
	require.EqualError(t, err, "usage config: Bucket is required")
	_, err = usage.New(usage.Config{Bucket: &kv.Bucket{}})
	require.EqualError(t, err, "usage config: Worker is required")
}

func TestEveryCallAndRequestIsCountedOnce(t *testing.T) {
	bubble(t, func(f *fleet) {
		one, _ := f.worker("one")
		two, _ := f.worker("two")
		answered(one, "acme", "support", "gpt-4.1", 10, 5, 0.25)
		answered(two, "acme", "support", "gpt-4.1", 1, 2, 0.5)
		ctx, req := f.Context(), &llm.Request{Tenant: "b.c", Feature: "support"}
		two.AttemptEnded(ctx, req, &llm.Attempt{Provider: "openai", Model: "gpt-4.1", CostUSD: 0.125, Usage: &llm.Usage{
			InputTokens: new(int64(7)), OutputTokens: new(int64(6)), CachedInputTokens: new(int64(4)), ReasoningTokens: new(int64(3)), Estimated: true}})
		two.AttemptEnded(ctx, req, &llm.Attempt{Provider: "local", Model: "llama"}) // nothing is known of it
		two.RequestEnded(ctx, req, chain.Ending{Error: llm.Errorf(llm.CodeUnavailable, "down")})
		two.RequestEnded(ctx, req, chain.Ending{Response: &llm.Response{ServedBy: llm.ServedByFallback, Provider: "openai", Model: "gpt-4.1"}})
		natstest.Advance(1100 * time.Millisecond)

		key := func(tenant, provider, model string) usage.Key {
			return usage.Key{Day: "2000-01-01", Tenant: tenant, Feature: "support", Provider: provider, Model: model}
		}
		require.Equal(f, []usage.Row{
			{key("acme", "openai", "gpt-4.1"), usage.Totals{Requests: 2, Calls: 2, InputTokens: 11, OutputTokens: 7, CostUSD: 0.75}},
			{key("b.c", "", ""), usage.Totals{Requests: 2, Failed: 1}},
			{key("b.c", "local", "llama"), usage.Totals{Calls: 1}},
			{key("b.c", "openai", "gpt-4.1"), usage.Totals{Calls: 1, InputTokens: 7, CachedInputTokens: 4, OutputTokens: 6, ReasoningTokens: 3, Estimated: 1, CostUSD: 0.125}},
		}, f.read(0))
		_, behind := one.Behind()
		require.False(f, behind)
	})
}

func TestADayEndsAtMidnightUTC(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, _ := f.worker("one")
		answered(u, "", "f", "m", 1, 1, 1)
		natstest.Advance(24*time.Hour - time.Second)
		answered(u, "", "f", "m", 1, 1, 1)
		natstest.Advance(2 * time.Second)
		require.Zero(f, u.Held(), "totals of yesterday are put and forgotten")
		answered(u, "", "f", "m", 1, 1, 1)
		natstest.Advance(2 * time.Second)

		rows := f.read(1)
		require.Len(f, rows, 2)
		require.Equal(f, []any{"2000-01-01", int64(2)}, []any{rows[0].Day, rows[0].Requests})
		require.Equal(f, []any{"2000-01-02", int64(1)}, []any{rows[1].Day, rows[1].Requests})
		require.Len(f, f.read(0), 1, "today alone")
	})
}

func TestAWorkerThatEndsPutsWhatIsLeft(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, stop := f.worker("one")
		answered(u, "", "f", "m", 1, 1, 1)
		stop()
		require.Len(f, f.read(0), 1)
	})
}

func TestCountingGoesOnWithoutKV(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, _ := f.worker("one")
		for i := range 3 {
			answered(u, "", "f", string(rune('a'+i)), 1, 1, 1)
		}
		require.NoError(f, f.js.DeleteStream(f.Context(), "KV_"+kv.UsageBucket))
		natstest.Advance(10 * time.Second)
		since, behind := u.Behind()
		require.True(f, behind)
		require.Less(f, time.Since(since), 10*time.Second)
		answered(u, "", "f", "a", 1, 1, 1)
		require.Contains(f, f.log.String(), "usage cannot be put")

		_, err := kv.Open(f.Context(), f.js, kv.Options{Storage: 1})
		require.NoError(f, err)
		natstest.Advance(5 * time.Second)
		_, behind = u.Behind()
		require.False(f, behind)
		sum := usage.Sum(f.read(0))
		require.Len(f, sum, 1)
		require.Equal(f, int64(4), sum[0].Requests, "nothing was lost or counted twice")
		require.Contains(f, f.log.String(), "usage is put into llm_usage again")
	})
}

func TestWhatIsLostIsSaid(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, stop := f.worker("one")
		require.NoError(f, f.js.DeleteStream(f.Context(), "KV_"+kv.UsageBucket))
		answered(u, "", "f", "m", 1, 1, 1)
		stop()
		require.Contains(f, f.log.String(), `level=ERROR msg="usage is lost: it could not be put into llm_usage" totals=1`)
	})
}

func TestTotalsBeyondTheRoomAreCountedTogether(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, _ := f.worker("one")
		u.Crowd(2)
		for i := range 10 {
			answered(u, string(rune('a'+i)), "f", "m", 1, 1, 0.5)
		}
		natstest.Advance(2 * time.Second)
		rows := f.read(0)
		require.Len(f, rows, 3)
		require.Equal(f, usage.Others, rows[0].Tenant)
		require.Equal(f, int64(8), rows[0].Requests)
		require.Equal(f, 4.0, rows[0].CostUSD)
		require.Contains(f, f.log.String(), "counted together")
	})
}

func TestManyCountAtOnce(t *testing.T) {
	bubble(t, func(f *fleet) {
		u, stop := f.worker("one")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 500 {
					answered(u, "", "f", string(rune('a'+i%3)), 1, 2, 0)
					if i%100 == 0 {
						<-time.After(700 * time.Millisecond) // so that flushes come between
					}
				}
			})
		}
		all.Wait()
		stop()
		require.Equal(f, []usage.Row{{Totals: usage.Totals{Requests: 4000, Calls: 4000, InputTokens: 4000, OutputTokens: 8000}}}, usage.Sum(f.read(0)))
	})
}

func TestSum(t *testing.T) {
	rows := []usage.Row{
		{usage.Key{Day: "1", Tenant: "a", Model: "m"}, usage.Totals{Requests: 1}},
		{usage.Key{Day: "1", Tenant: "b", Model: "m"}, usage.Totals{Requests: 2}},
		{usage.Key{Day: "2", Tenant: "a", Model: "n"}, usage.Totals{Requests: 4}},
	}
	for _, c := range []struct {
		by   []usage.Dimension
		want []usage.Row
	}{
		{nil, []usage.Row{{usage.Key{}, usage.Totals{Requests: 7}}}},
		{[]usage.Dimension{usage.ByTenant}, []usage.Row{{usage.Key{Tenant: "a"}, usage.Totals{Requests: 5}}, {usage.Key{Tenant: "b"}, usage.Totals{Requests: 2}}}},
		{[]usage.Dimension{usage.ByModel, usage.ByDay}, []usage.Row{{usage.Key{Day: "1", Model: "m"}, usage.Totals{Requests: 3}}, {usage.Key{Day: "2", Model: "n"}, usage.Totals{Requests: 4}}}},
		{usage.Dimensions(), rows},
	} {
		require.Equal(t, c.want, usage.Sum(rows, c.by...))
	}
	require.Empty(t, usage.Sum(nil))
}

func TestReadNamesAKeyThatIsNoTotal(t *testing.T) {
	bubble(t, func(f *fleet) {
		_, err := f.bucket.Put(f.Context(), "2000-01-01.x", []byte("{}"))
		require.NoError(f, err)
		_, err = usage.Read(f.Context(), f.bucket, time.Now(), time.Now())
		require.ErrorContains(f, err, `key "2000-01-01.x" of llm_usage is none of a total`)
		require.NoError(f, f.bucket.Delete(f.Context(), "2000-01-01.x", 0))
		_, err = f.bucket.Put(f.Context(), "2000-01-01.a.b.c.d.w", []byte("{"))
		require.NoError(f, err)
		_, err = usage.Read(f.Context(), f.bucket, time.Now(), time.Now())
		require.ErrorContains(f, err, "read 2000-01-01.a.b.c.d.w in llm_usage")
	})
}

// BenchmarkRequest is what a request with one call costs on its way.
func BenchmarkRequest(b *testing.B) {
	u, err := usage.New(usage.Config{Bucket: &kv.Bucket{}, Worker: "w"})
	require.NoError(b, err)
	ctx, req, a := context.Background(), &llm.Request{Tenant: "acme", Feature: "support"}, call("gpt-5-mini", 1000, 200, 0.001)
	end := chain.Ending{Response: &llm.Response{ServedBy: llm.ServedByModel, Provider: "openai", Model: "gpt-5-mini"}}
	b.ReportAllocs()
	for b.Loop() {
		u.AttemptEnded(ctx, req, a)
		u.RequestEnded(ctx, req, end)
	}
}
