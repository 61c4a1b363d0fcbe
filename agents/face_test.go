package agents_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/agents"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/provider/fake"
)

func (r *rig) discover(t *testing.T) map[string]micro.Info {
	t.Helper()
	inbox := r.listen(t, r.caller.NewInbox())
	require.NoError(t, r.caller.PublishRequest("$SRV.INFO.agents", inbox.Subject, nil))
	found := map[string]micro.Info{}
	for _, msg := range received(t, inbox) {
		var info micro.Info
		require.NoError(t, json.Unmarshal(msg.Data, &info))
		found[info.Metadata["session"]] = info
	}
	return found
}

func TestEachFeatureIsAnAgent(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, feature{fake.New()})
		found := r.discover(t)
		require.Len(t, found, 2)
		a := found["a"]
		require.Equal(t, "agents", a.Name)
		require.Equal(t, "1.2.3", a.Version)
		maps.DeleteFunc(a.Metadata, func(name, _ string) bool { return strings.HasPrefix(name, "_nats.") })
		require.Equal(t, map[string]string{"agent": "llmbus", "owner": "o", "session": "a", "feature": "a", "protocol_version": "0.3"}, a.Metadata)
		require.Len(t, a.Endpoints, 2)
		require.Equal(t, promptA, a.Endpoints[0].Subject)
		require.Equal(t, "agents", a.Endpoints[0].QueueGroup)
		require.Equal(t, map[string]string{"max_payload": "1MB", "attachments_ok": "false"}, a.Endpoints[0].Metadata)
		require.Equal(t, statusA, a.Endpoints[1].Subject)

		r.face.Announce([]string{"b", "c"}) // the configuration has changed
		natstest.Advance(time.Second)
		found = r.discover(t)
		require.Len(t, found, 2)
		require.Contains(t, found, "b")
		require.Contains(t, found, "c")
		require.NoError(t, r.stop())
		require.Empty(t, r.discover(t))
	})
}

func TestAgentsGiveSignsOfLife(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, feature{fake.New()}, func(c *agents.Config) { c.Heartbeat = 5 * time.Second })
		beats := r.listen(t, "agents.hb.*.*.*")
		require.NoError(t, r.caller.PublishRequest(statusA, "$KV.llm_flags.all", nil)) // is not answered
		natstest.Advance(11 * time.Second)
		require.Len(t, received(t, beats), 4)

		msg, err := r.caller.RequestWithContext(t.Context(), statusA, nil)
		require.NoError(t, err)
		var life map[string]any
		require.NoError(t, json.Unmarshal(msg.Data, &life))
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, life["ts"])
		require.Equal(t, r.discover(t)["a"].ID, life["instance_id"])
		delete(life, "ts")
		delete(life, "instance_id")
		require.Equal(t, map[string]any{"agent": "llmbus", "owner": "o", "session": "a", "interval_s": 5.0, "protocol_version": "0.3",
			"endpoints": map[string]any{"prompt": map[string]any{"subject": promptA, "metadata": map[string]any{"max_payload": "1MB", "attachments_ok": "false"}}}}, life)
	})
}

func TestConfigIsChecked(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		good := agents.Config{Conn: natstest.Connect(t, natstest.Server(t)), Completer: fake.New(), Owner: "o"}
		require.NoError(t, good.Validate())
		for want, change := range map[string]func(*agents.Config){
			"Conn must be set":      func(c *agents.Config) { c.Conn = nil },
			"Completer must be set": func(c *agents.Config) { c.Completer = nil },
			"Owner must be":         func(c *agents.Config) { c.Owner = "A b" },
			"Prompts must be":       func(c *agents.Config) { c.Prompts = -1 },
			"must not be negative":  func(c *agents.Config) { c.Grace = -1 },
			"KeepAlive must be":     func(c *agents.Config) { c.KeepAlive = time.Minute },
			"Heartbeat must be":     func(c *agents.Config) { c.Heartbeat = 1500 * time.Millisecond },
		} {
			bad := good
			change(&bad)
			_, err := agents.New(bad)
			require.ErrorContains(t, err, want)
		}
	})
}
