package app_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/internal/sim/simtest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// collect waits until each of some events has come, in any order, and returns
// the fields of the first of each.
func collect(t *testing.T, sub *nats.Subscription, names ...string) map[string]map[string]any {
	t.Helper()
	seen := map[string]map[string]any{}
	for missing := len(names); missing > 0; {
		msg, err := sub.NextMsg(patience)
		require.NoError(t, err, "of %v only %v came", names, slices.Collect(maps.Keys(seen)))
		require.NotContains(t, string(msg.Data), "hello", "an event holds content")
		var event map[string]any
		require.NoError(t, json.Unmarshal(msg.Data, &event))
		name := event["event"].(string)
		require.Equal(t, subjects.Event(name), msg.Subject)
		if seen[name] == nil {
			seen[name] = event
			if slices.Contains(names, name) {
				missing--
			}
		}
	}
	return seen
}

func TestEvents(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	start(t, joining(srv), overSim(provider, "sim-status-503"))
	nc := srv.Dial()
	sub, err := nc.SubscribeSync(subjects.Events)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	_, err = ask(t, nc, "default", "hello")
	require.ErrorIs(t, err, llm.ErrUnavailable)
	events := collect(t, sub, "request_started", "request_failed", "circuit_opened")
	require.Equal(t, "default", events["request_started"]["feature"])
	require.Equal(t, "unavailable", events["request_failed"]["code"])
	require.Regexp(t, "^w-....$", events["request_failed"]["worker"])
	opened := events["circuit_opened"]
	require.Equal(t, []any{"p", "sim-status-503", "closed", 10_000.0}, []any{opened["provider"], opened["model"], opened["from"], opened["cool_down_ms"]})

	_, err = kv.SetFlag(t.Context(), buckets(t, nc).Flags, kv.Flag{Key: "feature.default", By: "me", Reason: "incident 1"})
	require.NoError(t, err)
	flipped := collect(t, sub, "kill_switch_flipped")["kill_switch_flipped"]
	require.Equal(t, []any{"feature.default", false, "me", "incident 1"}, []any{flipped["flag"], flipped["on"], flipped["by"], flipped["reason"]})
}

func TestOffNowStopsWhatIsInFlight(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	start(t, joining(srv), overSim(provider, "sim-hang"))
	nc := srv.Dial()
	answers := make(chan error, 1)
	go func() {
		_, err := ask(t, nc, "default", "hello")
		answers <- err
	}()
	require.Eventually(t, func() bool { return provider.Stats().InFlight == 1 }, patience, tick)
	_, err := kv.SetFlag(t.Context(), buckets(t, nc).Flags, kv.Flag{Key: kv.AllKey, Now: true})
	require.NoError(t, err)
	require.ErrorIs(t, <-answers, llm.ErrSwitchedOff)
	require.Eventually(t, func() bool { return provider.Stats().InFlight == 0 }, patience, tick, "the provider's socket is closed")
}

func TestStatus(t *testing.T) {
	srv := natstest.ListenServer(t)
	start(t, joining(srv), echoConfig)
	msg, err := srv.Dial().Request(subjects.Status, nil, patience)
	require.NoError(t, err)
	var report struct {
		State   bus.State `json:"state"`
		Details struct {
			Features []struct {
				Name    string   `json:"name"`
				Targets []string `json:"targets"`
			} `json:"features"`
			Breakers []struct {
				Key   string `json:"key"`
				State string `json:"state"`
			} `json:"breakers"`
			Degraded bool `json:"degraded"`
		} `json:"details"`
	}
	require.NoError(t, json.Unmarshal(msg.Data, &report))
	require.Equal(t, bus.Joined, report.State)
	require.Equal(t, "default", report.Details.Features[0].Name)
	require.Equal(t, []string{"echo/echo"}, report.Details.Features[0].Targets)
	require.Equal(t, "echo.echo", report.Details.Breakers[0].Key)
	require.False(t, report.Details.Degraded)
}

func TestCachedFallback(t *testing.T) {
	srv, provider := natstest.ListenServer(t), simtest.Start(t)
	start(t, joining(srv), "providers: {p: {kind: openai, base_url: "+provider.URL()+"}}\n"+
		"features: {default: {targets: [{provider: p, model: sim-first-0-ok}], fallback: [cached]}}\n")
	nc := srv.Dial()
	first, err := ask(t, nc, "default", "hello")
	require.NoError(t, err)
	_, err = kv.SetFlag(t.Context(), buckets(t, nc).Flags, kv.Flag{Key: kv.FeatureKey("default")})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		resp, err := ask(t, nc, "default", "hello")
		return err == nil && resp.Stale && resp.Content == first.Content && resp.ServedBy == llm.ServedByKillSwitch
	}, patience, tick)
	_, err = ask(t, nc, "default", "another question")
	require.True(t, errors.Is(err, llm.ErrSwitchedOff))
}
