package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// canaries are what must not be found, each one word of letters and digits, so
// that nothing but knowing better keeps it out of a code, a name or an id.
const (
	keyCanary    = "keycanary7f3a9c21d8e0"
	promptCanary = "promptcanary5b0e77aa12c4"
	answerCanary = "answercanary91c4f2e6d0b3"
)

var canaries = []string{keyCanary, promptCanary, answerCanary}

// TestSecretsStayWhereTheyBelong has providers repeat the key, the prompt and
// their answer in everything they send, over every adapter and failure, and
// reads all that the worker publishes, stores and logs. The prompt may be in the
// request alone; an answer in the frames and replies that carry it, and in
// llm_cache; the key nowhere.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	parrot := startParrot(t)
	srv := natstest.ListenServer(t)
	seen := listenToAll(t, srv.Dial())
	log := runWorker(t, srv.ClientURL(), parrot)
	nc := srv.Dial()

	succeeded, failed := 0, map[llm.Code]int{}
	for _, kind := range parrotKinds {
		for _, mode := range parrotModes {
			feature := kind + "-" + mode
			for _, stream := range []bool{false, true} {
				if code := askParrot(t, nc, feature, mode, stream); code == "" {
					succeeded++
				} else {
					failed[code]++
				}
			}
		}
	}
	require.NotZero(t, succeeded)
	for _, code := range []llm.Code{llm.CodeUnavailable, llm.CodeProviderAuth, llm.CodeInvalidRequest, llm.CodeInvalidOutput, llm.CodeRateLimited, llm.CodeInterrupted} {
		require.NotZero(t, failed[code], "%s: %v", code, failed)
	}
	useTheCache(t, nc)
	for _, subject := range []string{subjects.Status, "$SRV.INFO.llmbus", "$SRV.STATS.llmbus"} {
		_, err := nc.Request(subject, nil, 5*time.Second)
		require.NoError(t, err)
	}

	require.NotZero(t, seen.check(t, "llm.failures."), "failures are announced")
	require.NotZero(t, seen.check(t, "llm.events.request_failed"))
	require.NotZero(t, seen.check(t, "llm.kv.breakers."))
	require.NotZero(t, seen.check(t, "$KV.llm_cache."), "answers are kept")
	checkBuckets(t, nc)
	text := log.String()
	require.Contains(t, text, "provider needs an operator")
	require.Contains(t, text, `"level":"DEBUG"`)
	for line := range strings.Lines(text) {
		for _, canary := range canaries {
			require.NotContains(t, line, canary)
		}
	}
}

// runWorker starts a worker with a feature for each kind of provider and mode of
// the parrot, and returns its log.
func runWorker(t *testing.T, natsURL, parrotURL string) *lockedBuffer {
	t.Helper()
	keyFile := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(keyFile, []byte(keyCanary+"\n"), 0o600))
	var config strings.Builder
	config.WriteString("breaker: {threshold: 2, cool_down: 100ms}\nproviders:\n")
	for _, kind := range parrotKinds {
		protocol, api, _ := strings.Cut(kind, "-")
		fmt.Fprintf(&config, "  %s: {kind: %s, base_url: %q, api_key_file: %q", kind, protocol, parrotURL, keyFile)
		if api != "" {
			fmt.Fprintf(&config, ", api: %s", api)
		}
		config.WriteString("}\n")
	}
	config.WriteString("features:\n")
	for _, kind := range parrotKinds {
		for _, mode := range parrotModes {
			fmt.Fprintf(&config, "  %s-%s: {targets: [{provider: %s, model: mode-%s, attempts: 1}], fallback: [cached]}\n", kind, mode, kind, mode)
		}
	}
	log := new(lockedBuffer)
	ready, ended := make(chan struct{}), make(chan error, 1)
	worker := app.New(app.Defaults(natsURL), app.Options{
		Version: "1.0.0", Config: []byte(config.String()), Ready: func() { close(ready) },
		Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { ended <- worker.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	return log
}

// askParrot sends one request and returns the code of its error, or "".
func askParrot(t *testing.T, nc *nats.Conn, feature, mode string, stream bool) llm.Code {
	t.Helper()
	payload := map[string]any{"prompt": promptCanary, "stream": stream, "timeout_ms": 5000}
	if mode == "schema" {
		payload["json_schema"] = map[string]any{"type": "object"}
	}
	data, err := json.Marshal(payload)
	require.NoError(t, err)
	id := fmt.Sprintf("id-%s-%t", feature, stream)
	msg, err := nc.RequestMsg(&nats.Msg{Subject: subjects.Complete(feature), Data: data, Header: nats.Header{subjects.HeaderRequestID: {id}}}, 10*time.Second)
	require.NoError(t, err, id)
	_, err = llm.DecodeReply(msg.Data)
	if err == nil {
		require.Contains(t, string(msg.Data), answerCanary, id)
		return ""
	}
	var failed *llm.Error
	require.ErrorAs(t, err, &failed)
	return failed.Code
}

// useTheCache has a feature that has answered answer again while it is off.
func useTheCache(t *testing.T, nc *nats.Conn) {
	t.Helper()
	feature := parrotKinds[0] + "-names"
	_, err := flagsBucket(t, nc).PutString(t.Context(), "feature."+feature, "off")
	require.NoError(t, err)
	payload := []byte(`{"prompt":"` + promptCanary + `","timeout_ms":5000}`)
	require.Eventually(t, func() bool {
		msg, err := nc.Request(subjects.Complete(feature), payload, 5*time.Second)
		return err == nil && bytes.Contains(msg.Data, []byte(`"stale":true`)) && bytes.Contains(msg.Data, []byte(answerCanary))
	}, 5*time.Second, 10*time.Millisecond)
}

// captured is every message of the server, in order.
type captured struct {
	conn *nats.Conn
	mu   sync.Mutex
	msgs []*nats.Msg
}

func listenToAll(t *testing.T, nc *nats.Conn) *captured {
	t.Helper()
	c := &captured{conn: nc}
	_, err := nc.Subscribe(">", func(m *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.msgs = append(c.msgs, m)
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return c
}

// check judges all messages so far and counts those of a subject.
func (c *captured) check(t *testing.T, prefix string) (count int) {
	t.Helper()
	require.NoError(t, c.conn.Flush())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.msgs {
		if strings.HasPrefix(m.Subject, prefix) {
			count++
		}
		outside := m.Subject + m.Reply + fmt.Sprint(m.Header)
		for _, canary := range canaries {
			require.NotContains(t, outside, canary, "subject or headers")
			if !mayHold(m, canary) {
				require.NotContains(t, string(m.Data), canary, m.Subject)
			}
		}
	}
	return count
}

// mayHold reports whether the canary may be in the message's payload.
func mayHold(m *nats.Msg, canary string) bool {
	switch canary {
	case promptCanary:
		return strings.HasPrefix(m.Subject, "llm.complete.")
	case answerCanary:
		if strings.HasPrefix(m.Subject, "$KV.llm_cache.") {
			return true
		}
		return (strings.HasPrefix(m.Subject, "_INBOX.") || strings.HasPrefix(m.Subject, "llm.stream.")) && isAnswer(m.Data)
	}
	return false
}

// isAnswer reports whether a payload is an answer, a piece of one, or one from
// llm_cache, and no error.
func isAnswer(data []byte) bool {
	var shape struct {
		Type  llm.FrameType   `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(data, &shape) == nil && shape.Error == nil && shape.Type != llm.FrameError && shape.Type != llm.FrameStart
}

// checkBuckets reads every value of every bucket.
func checkBuckets(t *testing.T, nc *nats.Conn) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	buckets := 0
	for status := range js.KeyValueStores(t.Context()).Status() {
		buckets++
		bucket, err := js.KeyValue(t.Context(), status.Bucket())
		require.NoError(t, err)
		all, err := bucket.WatchAll(t.Context(), jetstream.IncludeHistory())
		require.NoError(t, err)
		for entry := range all.Updates() {
			if entry == nil {
				break
			}
			for _, canary := range canaries {
				if canary != answerCanary || status.Bucket() != "llm_cache" {
					require.NotContains(t, entry.Key()+string(entry.Value()), canary, status.Bucket())
				}
			}
		}
		require.NoError(t, all.Stop())
	}
	require.GreaterOrEqual(t, buckets, 5)
}
