package fleet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

const primary = "primary.model-a"

// TestViewGolden compares a view of everything with the file that people who
// read broker top --json can count on. UPDATE_GOLDEN=1 writes it anew.
func TestViewGolden(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		s.furnish()
		s.worker("w1", map[string]breaker.State{primary: breaker.Open, "backup.vendor=2Fmodel=2Eb": breaker.Closed})
		s.worker("w2", map[string]breaker.State{primary: breaker.Closed, "backup.vendor=2Fmodel=2Eb": breaker.Closed})
		w := s.watch(nil)
		_, err := s.buckets.Breakers.Put(t.Context(), primary, []byte(`{"state":"open","why":"unavailable","generation":3,"cool_down_ms":10000,"by":"w1"}`))
		require.NoError(t, err)
		_, err = kv.SetFlag(t.Context(), s.buckets.Flags, kv.Flag{Key: kv.FeatureKey("support"), By: "ann", Reason: "incident 123"})
		require.NoError(t, err)
		require.NoError(t, s.nc.Publish(subjects.Job("support"), []byte(`{"prompt":"x"}`)))
		require.NoError(t, s.nc.Publish(subjects.DeadLetter("support", "", "j1"), []byte(`{}`)))
		s.event("kill_switch_flipped", `"flag":"feature.support","revision":1,"on":false,"by":"ann","reason":"incident 123"`)
		s.event("kill_switch_flipped", `"flag":"feature.support","revision":1,"on":false,"by":"ann","reason":"incident 123"`)
		natstest.Advance(500 * time.Millisecond)
		for i := range 10 {
			s.event("request_started", fmt.Sprintf(`"request_id":"r%d","feature":"support"`, i))
			s.event("request_succeeded", fmt.Sprintf(`"request_id":"r%d","feature":"support","provider":"primary","model":"model-a","ms":%d,"first_token_ms":40,"cost_usd":0.25,"attempts":1`, i, 100+i))
		}
		s.event("request_succeeded", `"request_id":"r10","feature":"support","provider":"backup","model":"vendor/model.b","ms":300,"attempts":2`)
		s.event("failover_succeeded", `"request_id":"r10","feature":"support","provider":"backup","model":"vendor/model.b","attempts":2`)
		natstest.Advance(time.Second)
		s.event("request_failed", `"request_id":"r11","feature":"support","code":"unavailable","ms":7,"attempts":2,"class":"unavailable"`)
		natstest.Advance(2 * time.Second)

		wire, err := json.MarshalIndent(w.View(), "", "  ")
		require.NoError(t, err)
		got := append(bytes.ReplaceAll(wire, []byte(s.srv.ClientURL()), []byte("nats://n1:4222")), '\n')
		if os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile("testdata/view.json", got, 0o644))
		}
		want, err := os.ReadFile("testdata/view.json")
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

func TestEmptyFleetIsStaleAndNotNull(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		w := s.watch(nil)
		v := w.View()
		require.Equal(t, []fleet.Part{fleet.PartWorkers, fleet.PartBreakers, fleet.PartSwitches, fleet.PartJobs}, v.Stale)
		require.True(t, v.NATS.Connected)
		wire, err := json.Marshal(v)
		require.NoError(t, err)
		for _, list := range []string{"features", "breakers", "switches", "workers", "events", "series"} {
			require.Regexp(t, `"`+list+`":\[`, string(wire))
		}
		require.Contains(t, string(wire), `"jobs":{"waiting":null,"oldest_ms":null,"dead":null}`)

		s.furnish() // a worker comes and makes the buckets
		s.worker("w1", nil)
		natstest.Advance(4 * time.Second)
		require.Empty(t, w.View().Stale)
	})
}

func TestBreakerIsShownAtOnceAndCountsDown(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		s.furnish()
		s.worker("w1", map[string]breaker.State{primary: breaker.Closed})
		told := make(chan struct{}, 100)
		w := s.watch(func() { told <- struct{}{} })
		for len(told) > 0 {
			<-told
		}
		_, err := s.buckets.Breakers.Put(t.Context(), primary, []byte(`{"state":"open","why":"timeout","cool_down_ms":8000}`))
		require.NoError(t, err)
		<-told
		b := w.View().Breakers[0]
		require.Equal(t, []any{breaker.Open, "timeout", 0, 1}, []any{b.State, b.Why, b.Workers, b.Of})
		require.Equal(t, breaker.Open, w.View().Features[0].Targets[0].State)
		require.Equal(t, breaker.Closed, w.View().Features[0].Targets[1].State)
		natstest.Advance(3 * time.Second)
		require.InDelta(t, 5000, w.View().Breakers[0].RetryMS, 100)
		natstest.Advance(10 * time.Second)
		require.Zero(t, w.View().Breakers[0].RetryMS)
		require.Equal(t, breaker.Open, w.View().Breakers[0].State, "a cool-down that is over proves nothing")

		_, err = s.buckets.Breakers.Put(t.Context(), primary, []byte(`{"state":"cooling","why":"rate_limited","cool_down_ms":1000}`))
		require.NoError(t, err)
		natstest.Advance(500 * time.Millisecond)
		require.Equal(t, breaker.Cooling, w.View().Breakers[0].State)
		natstest.Advance(time.Second)
		require.Equal(t, breaker.Closed, w.View().Breakers[0].State, "cooling ends by itself")
	})
}

func TestBreakerWithoutARecordIsWhatMostWorkersSay(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		s.furnish()
		s.worker("w1", map[string]breaker.State{primary: breaker.Open})
		s.worker("w2", map[string]breaker.State{primary: breaker.Open})
		s.worker("w3", map[string]breaker.State{primary: breaker.Closed})
		b := s.watch(nil).View().Breakers[0]
		require.Equal(t, []any{breaker.Open, 2, 3, 2}, []any{b.State, b.Workers, b.Of, b.Failures})
	})
}

func TestWorkerThatFallsSilentIsShownAndForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		s.furnish()
		s.worker("w1", nil)
		stop := s.worker("w2", nil)
		w := s.watch(nil)
		require.Len(t, w.View().Workers, 2)
		require.Equal(t, "joined", w.View().Workers[1].State)
		stop()
		natstest.Advance(10 * time.Second)
		require.Equal(t, []string{"joined", fleet.Silent}, []string{w.View().Workers[0].State, w.View().Workers[1].State})
		require.NotContains(t, w.View().Stale, fleet.PartWorkers)
		natstest.Advance(40 * time.Second)
		require.Len(t, w.View().Workers, 1)
	})
}

func TestFeaturesStayWhenAllWorkersAreGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		s.furnish()
		stop := s.worker("w1", nil)
		w := s.watch(nil)
		require.Len(t, w.View().Features, 1)
		stop()
		natstest.Advance(time.Minute)
		v := w.View()
		require.Contains(t, v.Stale, fleet.PartWorkers)
		require.Len(t, v.Features, 1)
		require.Empty(t, v.Workers)
	})
}

// TestNATSAway is not in a bubble: a server that stops and comes back needs a
// port.
func TestNATSAway(t *testing.T) {
	srv := natstest.ListenServer(t)
	s := &stage{t: t, srv: srv.Server, nc: srv.Dial(quiet)}
	s.furnish()
	s.worker("w1", map[string]breaker.State{primary: breaker.Closed})
	w, err := fleet.New(fleet.Config{Conn: srv.Dial(quiet), Interval: 50 * time.Millisecond})
	require.NoError(t, err)
	follow(t, w)
	soon := func(what func(*fleet.View) bool) {
		t.Helper()
		require.Eventually(t, func() bool { return what(w.View()) }, 10*time.Second, 5*time.Millisecond)
	}
	soon(func(v *fleet.View) bool {
		return len(v.Stale) == 1 && v.Stale[0] == fleet.PartJobs || len(v.Stale) == 0
	})
	srv.Stop()
	soon(func(v *fleet.View) bool { return len(v.Stale) == 6 && !v.NATS.Connected })
	require.Len(t, w.View().Workers, 1, "what was known stays")
	require.Len(t, w.View().Features, 1)
	srv.Restart()
	soon(func(v *fleet.View) bool { return !contains(v.Stale, fleet.PartWorkers) && v.NATS.Connected })
}

// quiet keeps broken connections, which are the point, out of the output.
func quiet(o *nats.Options) error {
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	return nil
}

func contains(parts []fleet.Part, p fleet.Part) bool {
	return slices.Contains(parts, p)
}

// TestEventsThatMayNotBeHeard gives the watch the rights of a worker at most.
func TestEventsThatMayNotBeHeard(t *testing.T) {
	srv := natstest.ListenServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "w", Password: "w", Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "llm.kv.>"}}}}}
	})
	w, err := fleet.New(fleet.Config{Conn: srv.Dial(quiet, nats.UserInfo("w", "w"), nats.PermissionErrOnSubscribe(true))})
	require.NoError(t, err)
	follow(t, w)
	require.Eventually(t, func() bool { return slices.Contains(w.View().Stale, fleet.PartEvents) }, 10*time.Second, 5*time.Millisecond)
	require.NotContains(t, w.View().Stale, fleet.PartNATS)
}

func TestRunEndsWithTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage) {
		nc := natstest.Connect(t, s.srv)
		w, err := fleet.New(fleet.Config{Conn: nc})
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		<-w.Ready()
		nc.Close()
		require.ErrorIs(t, <-done, nats.ErrConnectionClosed)
	})
	_, err := fleet.New(fleet.Config{})
	require.ErrorContains(t, err, "Conn must be set")
}
