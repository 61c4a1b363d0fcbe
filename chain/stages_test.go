package chain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func TestUnknownFeature(t *testing.T) {
	rig := newRig(t, nil, fake.New())
	req := ask()
	req.Feature = "other"
	for _, do := range both {
		got := do(t.Context(), rig, req)
		require.Equal(t, llm.CodeUnknownFeature, got.err.Code)
		require.Contains(t, got.err.Message, "known are f")
	}
}

func TestSwitches(t *testing.T) {
	for flag, want := range map[string]map[string]int{
		"all":                    {"a": 0, "b": 0},
		"feature.f":              {"a": 0, "b": 0},
		"tenant.acme":            {"a": 0, "b": 0},
		"feature.f.tenant.acme":  {"a": 0, "b": 0},
		"feature.other":          {"a": 1, "b": 1},
		"provider.a":             {"a": 0, "b": 1},
		"model.b.m":              {"a": 1, "b": 0},
		"failover":               {"a": 1, "b": 0},
		"failover.f":             {"a": 1, "b": 0},
		"failover.f.tenant.acme": {"a": 1, "b": 0},
	} {
		for way, do := range both {
			t.Run(flag+"/"+way, func(t *testing.T) {
				rig := newRig(t, nil, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New())
				rig.switches.set(t, map[string]string{flag: "off"})
				req := ask()
				req.Tenant = "acme"
				got := do(t.Context(), rig, req)
				require.Equal(t, want, rig.counts())
				if want["a"]+want["b"] == 0 {
					require.Equal(t, llm.CodeSwitchedOff, got.err.Code)
					require.Contains(t, got.err.Message, flag)
				}
			})
		}
	}
}

func TestEveryTargetSwitchedOff(t *testing.T) {
	rig := newRig(t, nil, fake.New(), fake.New())
	rig.switches.set(t, map[string]string{"provider.a": "off", "provider.b": "off"})
	require.Equal(t, llm.CodeSwitchedOff, complete(t.Context(), rig, ask()).err.Code)
}

func TestOffNowStopsWhatIsUnderWay(t *testing.T) {
	for flag, code := range map[string]llm.Code{"feature.f": llm.CodeSwitchedOff, "provider.a": ""} {
		for way, do := range both {
			t.Run(flag+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rig := newRig(t, nil, fake.New(fake.Hangs()), fake.New(fake.Answer("b")))
					time.AfterFunc(time.Second, func() { rig.Cut(rig.switches.set(t, map[string]string{flag: "off now"})) })
					got := do(t.Context(), rig, ask())
					require.Equal(t, time.Second, got.took)
					if code != "" {
						require.Equal(t, code, got.err.Code)
					} else {
						require.Nil(t, got.err)
						require.Equal(t, "b", got.resp.Content)
					}
				})
			})
		}
	}
}

func TestOffLetsWhatIsUnderWayFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(t, nil, fake.New(fake.Step{Wait: 2 * time.Second, Pieces: []string{"done"}}))
		time.AfterFunc(time.Second, func() { rig.Cut(rig.switches.set(t, map[string]string{"all": "off"})) })
		require.Equal(t, "done", complete(t.Context(), rig, ask()).resp.Content)
	})
}

func TestStaticFallback(t *testing.T) {
	tune := func(f *chain.Feature) {
		f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "please try later"
	}
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rig := newRig(t, tune, fake.New(fake.FailsWith(llm.OutcomeConnect)))
				got := do(t.Context(), rig, ask())
				require.Nil(t, got.err)
				require.Equal(t, "please try later", got.resp.Content)
				require.Equal(t, llm.ServedByFallback, got.resp.ServedBy)
				require.Equal(t, llm.FallbackStatic, got.resp.Fallback)
				require.Len(t, got.resp.Attempts, 1)

				rig.switches.set(t, map[string]string{"all": "off"})
				got = do(t.Context(), rig, ask())
				require.Equal(t, llm.ServedByKillSwitch, got.resp.ServedBy)
				require.Equal(t, "please try later", got.resp.Content)
			})
		})
	}
}

func TestFallbackDoesNotHideABadRequest(t *testing.T) {
	tune := func(f *chain.Feature) { f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackStatic}, "x" }
	for _, outcome := range []llm.Outcome{llm.OutcomeInvalidRequest, llm.OutcomeContextLength, llm.OutcomeContentFiltered} {
		rig := newRig(t, tune, fake.New(fake.FailsWith(outcome)))
		require.NotNil(t, complete(t.Context(), rig, ask()).err, outcome)
	}
}

// memory is an AnswerCache.
type memory map[string][]byte

func (m memory) Keep(tenant, feature, key string, answer []byte) {
	m[tenant+"/"+feature+"/"+key] = answer
}

func (m memory) Find(_ context.Context, tenant, feature, key string) ([]byte, error) {
	if a, ok := m[tenant+"/"+feature+"/"+key]; ok {
		return a, nil
	}
	return nil, errors.New("not kept")
}

func TestCachedFallback(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := fake.New(fake.Answer("fresh"), fake.FailsWith(llm.OutcomeConnect))
				rig := newRig(t, func(f *chain.Feature) {
					f.Fallback, f.StaticText = []llm.FallbackMode{llm.FallbackCached, llm.FallbackStatic}, "nothing kept"
				}, a)
				rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Cache: memory{}})
				rig.Load([]chain.Feature{rig.feature})
				require.Equal(t, "fresh", do(t.Context(), rig, ask()).resp.Content)

				got := do(t.Context(), rig, ask())
				require.Equal(t, "fresh", got.resp.Content)
				require.Equal(t, llm.FallbackCached, got.resp.Fallback)
				require.True(t, got.resp.Stale)

				other := ask()
				other.Tenant = "acme"
				require.Equal(t, "nothing kept", do(t.Context(), rig, other).resp.Content, "another tenant's answer is not given")
			})
		})
	}
}

func TestCapabilities(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request func(*llm.Request)
		lacks   func(*chain.Target)
		says    string
	}{
		{"tools", func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "x"}} }, func(t *chain.Target) { t.Can.Tools = false }, "tools"},
		{"tool choice", func(r *llm.Request) { r.ToolChoice = &llm.ToolChoice{Mode: llm.ToolChoiceRequired} }, func(t *chain.Target) { t.Can.ToolChoice = false }, "tool_choice"},
		{"vision", func(r *llm.Request) { r.Messages[0].Content = picture("data:image/png;base64,AA==") }, func(t *chain.Target) { t.Can.Vision = false }, "image parts"},
		{"image by URL", func(r *llm.Request) { r.Messages[0].Content = picture("https://example.org/x.png") }, func(t *chain.Target) { t.Can.ImageURLs = false }, "images by URL"},
		{"schema", func(r *llm.Request) { r.JSONSchema = &llm.JSONSchema{Schema: []byte(`true`)} }, func(t *chain.Target) { t.Can.JSONSchema = false }, "json_schema"},
		{"seed", func(r *llm.Request) { r.Seed = new(int64) }, func(t *chain.Target) { t.Can.Seed = false }, "seed"},
		{"max tokens", func(r *llm.Request) { r.MaxTokens = 101 }, func(*chain.Target) {}, "max_tokens"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := ask()
			tc.request(req)
			rig := newRig(t, func(f *chain.Feature) { tc.lacks(&f.Targets[0]); f.Targets[1].Can.MaxOutputTokens = 500 }, fake.New(), fake.New(fake.Answer("{}")))
			require.Nil(t, complete(t.Context(), rig, req).err)
			require.Equal(t, map[string]int{"a": 0, "b": 1}, rig.counts())

			alone := newRig(t, func(f *chain.Feature) { tc.lacks(&f.Targets[0]) }, fake.New())
			got := complete(t.Context(), alone, req)
			require.Equal(t, llm.CodeInvalidRequest, got.err.Code)
			require.Contains(t, got.err.Message, tc.says)
			require.Equal(t, map[string]int{"a": 0}, alone.counts())
		})
	}
}

func picture(url string) llm.Content {
	return llm.Content{{Type: llm.PartImage, Image: &llm.ImageURL{URL: url}}}
}

func TestDataClassIsAHardFilter(t *testing.T) {
	rig := newRig(t, func(f *chain.Feature) {
		f.DataClass = "internal"
		f.Targets[1].Can.ApprovedFor = []string{"internal"}
	}, fake.New(), fake.New())
	require.Nil(t, complete(t.Context(), rig, ask()).err)
	require.Equal(t, map[string]int{"a": 0, "b": 1}, rig.counts())
	req := ask()
	req.DataClass = "secret"
	require.Equal(t, llm.CodePolicyDenied, complete(t.Context(), rig, req).err.Code)
}

func TestPrices(t *testing.T) {
	usage := &llm.Usage{InputTokens: new(int64(1000)), CachedInputTokens: new(int64(400)), OutputTokens: new(int64(100))}
	failed := failure(llm.OutcomeInvalidOutput, "")
	failed.Usage = usage
	rig := newRig(t, func(f *chain.Feature) {
		f.Targets[0].Price = chain.Price{Input: 1, CachedInput: 0.5, Output: 10}
		f.Targets[1].Price = chain.Price{Input: 2, Output: 20}
	}, fake.New(fake.Fails(failed)), fake.New(fake.Step{Pieces: []string{"x"}, Usage: usage}))
	got := complete(t.Context(), rig, ask())
	require.Nil(t, got.err)
	require.InDelta(t, 0.0018, got.resp.Attempts[0].CostUSD, 1e-9, "600 fresh, 400 cached, 100 out")
	require.InDelta(t, 0.0040, got.resp.Attempts[1].CostUSD, 1e-9)
	require.InDelta(t, 0.0058, got.resp.CostUSD, 1e-9, "a failed attempt is paid for too")
}

func TestOneLogLineWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		rig := newRig(t, nil, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New(fake.Step{Wait: time.Second, Pieces: []string{"completion-canary"}, Usage: &llm.Usage{InputTokens: new(int64(3)), OutputTokens: new(int64(4))}}))
		rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Log: slog.New(slog.NewJSONHandler(&log, nil))})
		rig.Load([]chain.Feature{rig.feature})
		req := ask()
		req.Tenant, req.Messages[0].Content = "acme", llm.Text("prompt-canary")
		require.Nil(t, complete(t.Context(), rig, req).err)

		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")))
		require.NotContains(t, log.String(), "canary")
		require.NotContains(t, log.String(), "acme")
		var line map[string]any
		require.NoError(t, json.Unmarshal(log.Bytes(), &line))
		delete(line, "time")
		require.Equal(t, map[string]any{"level": "INFO", "msg": "request", "id": "r1", "feature": "f", "class": "interactive", "tenant": "822b33ad87c1",
			"stream": false, "total_ms": 1000.0, "provider": "b", "model": "m", "model_version": "", "served_by": "model", "finish_reason": "stop",
			"first_token_ms": 0.0, "cost_usd": 0.0, "degraded": false, "input_tokens": 3.0, "output_tokens": 4.0, "outcome": "ok", "breaker": "closed", "attempts": 2.0}, line)
	})
}

func TestRepairFence(t *testing.T) {
	schema := &llm.JSONSchema{Schema: []byte(`{"type":"object"}`)}
	for text, want := range map[string]string{
		"```json\n{\"a\":1}\n```":    `{"a":1}`,
		"```\n{\"a\":1}```":          `{"a":1}`,
		"  {\"a\":1} ":               `{"a":1}`,
		"```json\n{\"a\":1}\n``` ok": "",
		"so: ```{\"a\":1}```":        "",
	} {
		req := ask()
		req.JSONSchema = schema
		rig := newRig(t, func(f *chain.Feature) { f.Repair = chain.RepairFence }, fake.New(fake.Answer(text)))
		got := complete(t.Context(), rig, req)
		if want == "" {
			require.Equal(t, llm.CodeInvalidOutput, got.err.Code, text)
			continue
		}
		require.Nil(t, got.err, text)
		require.Equal(t, want, got.resp.Content)
	}
}

func TestHostileSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"remote":    `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"file":      `{"$ref":"file:///etc/passwd"}`,
		"syntax":    `{"type":12}`,
		"dangling":  `{"$ref":"#/nowhere"}`,
		"oversized": `{"const":"` + string(bytes.Repeat([]byte("x"), 300<<10)) + `"}`,
	} {
		rig := newRig(t, nil, fake.New(fake.Answer("{}")))
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: []byte(schema)}
		got := complete(t.Context(), rig, req)
		require.NotNil(t, got.err, name)
		require.Equal(t, llm.CodeInvalidRequest, got.err.Code, name)
		require.Equal(t, map[string]int{"a": 0}, rig.counts(), name)
	}
	loop := ask()
	loop.JSONSchema = &llm.JSONSchema{Schema: []byte(`{"$ref":"#"}`)}
	rig := newRig(t, nil, fake.New(fake.Answer("{}")))
	require.NotNil(t, complete(t.Context(), rig, loop).err, "a schema that only refers to itself ends all the same")
}
