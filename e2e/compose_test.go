//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// The tests in this file run against docker-compose.yml, which
// deploy/compose/test.sh brings up; it names what to find where in the
// environment.

const (
	replicas    = 3
	deployedKey = "primary.model-a"
	settling    = 30 * time.Second
	lookAgain   = 50 * time.Millisecond
)

// deployment is the running compose file, healthy and without a fault.
type deployment struct {
	nc         *nats.Conn
	js         jetstream.JetStream
	sim        string
	containers []string
}

func deployed(t *testing.T) *deployment {
	d := &deployment{sim: os.Getenv("COMPOSE_TEST_SIM"), containers: strings.Fields(os.Getenv("COMPOSE_TEST_BROKERS"))}
	require.Len(t, d.containers, replicas)
	var err error
	d.nc, err = nats.Connect(os.Getenv("COMPOSE_TEST_NATS"))
	require.NoError(t, err)
	t.Cleanup(d.nc.Close)
	d.js, err = jetstream.New(d.nc)
	require.NoError(t, err)
	d.control(t, http.MethodDelete, "")
	d.untilAll(t, breaker.Closed)
	return d
}

func (d *deployment) control(t *testing.T, method, rule string) {
	req, err := http.NewRequestWithContext(t.Context(), method, d.sim+"/control", strings.NewReader(rule))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Less(t, resp.StatusCode, 300)
	require.NoError(t, resp.Body.Close())
}

// calls is how often the simulator was asked in the primary's language.
func (d *deployment) calls(t *testing.T) int {
	resp, err := http.Get(d.sim + "/stats")
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var stats struct{ Providers map[string]int }
	require.NoError(t, json.Unmarshal(data, &stats))
	return stats.Providers["openai"]
}

func (d *deployment) ask(t *testing.T) reply {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	var r reply
	msg, err := d.nc.RequestWithContext(ctx, subjects.Complete("default"), []byte(hello))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(msg.Data, &r))
	return r
}

// states is the primary's breaker as each worker that answers sees it.
func (d *deployment) states(t *testing.T) []breaker.State {
	sub, err := d.nc.SubscribeSync(d.nc.NewInbox())
	require.NoError(t, err)
	require.NoError(t, d.nc.PublishRequest(subjects.Status, sub.Subject, nil))
	var states []breaker.State
	for len(states) < replicas {
		msg, err := sub.NextMsg(time.Second)
		if err != nil {
			break
		}
		var report struct {
			Details struct{ Breakers []breaker.Status }
		}
		require.NoError(t, json.Unmarshal(msg.Data, &report))
		i := slices.IndexFunc(report.Details.Breakers, func(s breaker.Status) bool { return s.Key == deployedKey })
		require.GreaterOrEqual(t, i, 0)
		states = append(states, report.Details.Breakers[i].State)
	}
	return states
}

func (d *deployment) untilAll(t *testing.T, want breaker.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		d.ask(t) // a breaker that may close needs a caller
		return slices.Equal(d.states(t), slices.Repeat([]breaker.State{want}, replicas))
	}, settling, lookAgain, "%d workers see %s", replicas, want)
}

// stored is the primary's breaker in KV. One that never opened is not there.
func (d *deployment) stored(t *testing.T) breaker.State {
	bucket, err := d.js.KeyValue(t.Context(), "llm_breakers")
	require.NoError(t, err)
	entry, err := bucket.Get(t.Context(), deployedKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return breaker.Closed
	}
	require.NoError(t, err)
	record, err := breaker.DecodeRecord(entry.Value())
	require.NoError(t, err)
	return record.State
}

func TestComposeAnswers(t *testing.T) {
	got := deployed(t).ask(t)
	require.Nil(t, got.Error)
	require.Equal(t, "primary", got.Provider)
	require.Equal(t, llm.ServedByModel, got.ServedBy)
	require.NotEmpty(t, got.Content)
}

func TestComposeStreams(t *testing.T) {
	d := deployed(t)
	sub, err := d.nc.SubscribeSync(d.nc.NewInbox())
	require.NoError(t, err)
	require.NoError(t, d.nc.PublishRequest(subjects.Complete("default"), sub.Subject, []byte(`{"prompt":"hello","stream":true}`)))
	var text strings.Builder
	var last llm.Frame
	for n := uint64(1); ; n++ {
		msg, err := sub.NextMsg(10 * time.Second)
		require.NoError(t, err)
		if len(msg.Data) == 0 {
			break // the end of a request-many
		}
		last, err = llm.DecodeFrame(msg.Data)
		require.NoError(t, err)
		require.Equal(t, n, last.Seq)
		text.WriteString(last.Text)
	}
	require.Equal(t, llm.FrameEnd, last.Type)
	require.NotEmpty(t, text.String())
}

func TestComposeOutageAndRecovery(t *testing.T) {
	d := deployed(t)
	d.control(t, http.MethodPost, `{"fault":"status-503","provider":"openai"}`)
	require.Eventually(t, func() bool {
		got := d.ask(t)
		require.Nil(t, got.Error, "no caller notices the outage")
		require.Equal(t, "backup", got.Provider)
		return d.stored(t) == breaker.Open
	}, settling, lookAgain)
	d.untilAll(t, breaker.Open)

	before := d.calls(t)
	for range 30 {
		require.Equal(t, "backup", d.ask(t).Provider)
	}
	require.LessOrEqual(t, d.calls(t)-before, 1, "all workers skip the primary, but for a probe that may be due")

	d.control(t, http.MethodDelete, "")
	d.untilAll(t, breaker.Closed)
	require.Equal(t, breaker.Closed, d.stored(t))
	require.Equal(t, "primary", d.ask(t).Provider)
}

func TestComposeFlagFlip(t *testing.T) {
	d := deployed(t)
	bucket, err := d.js.KeyValue(t.Context(), "llm_flags")
	require.NoError(t, err)
	_, err = bucket.PutString(t.Context(), "feature.default", "off compose test")
	require.NoError(t, err)
	var got reply
	require.Eventually(t, func() bool { got = d.ask(t); return got.Error != nil }, time.Second, lookAgain)
	require.Equal(t, llm.CodeSwitchedOff, got.Error.Code)
	require.NoError(t, bucket.Delete(t.Context(), "feature.default"))
	require.Eventually(t, func() bool { return d.ask(t).Error == nil }, time.Second, lookAgain)
}

func TestComposeKilledBroker(t *testing.T) {
	d := deployed(t)
	docker := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var answered, lost atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if msg, err := d.nc.Request(subjects.Complete("default"), []byte(hello), 2*time.Second); err == nil && len(msg.Data) > 0 {
				answered.Add(1)
			} else {
				lost.Add(1)
			}
		}
	}()
	more := func() {
		seen := answered.Load()
		require.Eventually(t, func() bool { return answered.Load() >= seen+200 }, settling, lookAgain)
	}
	more()
	docker("kill", d.containers[0])
	more()
	require.Len(t, d.states(t), replicas-1)
	docker("start", d.containers[0])
	require.Eventually(t, func() bool { return len(d.states(t)) == replicas }, settling, lookAgain)
	more()
	close(stop)
	<-ended
	require.LessOrEqual(t, lost.Load(), int64(1), "the one request that the killed worker may have held")
	t.Logf("%d answered, %d lost with the killed worker", answered.Load(), lost.Load())
}
