package fence

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/internal/sim"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// duties are what a fleet must do for its callers and operators, all of it under
// the permissions of a configuration.
type duties struct {
	*site
	user     string
	nc       *nats.Conn
	client   *client.Client
	operator *nats.Conn
	buckets  *kv.Buckets
}

func newDuties(t *testing.T, s *site) *duties {
	t.Helper()
	d := &duties{site: s, user: s.callers[0], operator: s.dial(t, "operator")}
	d.nc = s.dial(t, d.user)
	d.client = s.client(t, d.nc, d.user)
	js, err := jetstream.New(d.operator)
	require.NoError(t, err)
	d.buckets, err = kv.Bind(t.Context(), js)
	require.NoError(t, err)
	return d
}

// all runs every duty, one after the other.
func (d *duties) all(t *testing.T) {
	for _, duty := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"request", d.request}, {"stream", d.stream}, {"frames on the reply", d.framesOnTheReply}, {"resume", d.resume}, {"cancel", d.cancel},
		{"idempotency", d.idempotency}, {"jobs", d.jobs}, {"breaker", d.breaker}, {"switch", d.switches},
		{"configuration", d.configuration}, {"fallbacks", d.fallbacks}, {"discovery", d.discovery},
	} {
		t.Run(duty.name, duty.do)
	}
}

func (d *duties) request(t *testing.T) {
	resp, err := d.client.Complete(t.Context(), question("default", "hello"))
	require.NoError(t, err)
	require.Equal(t, llm.ServedByModel, resp.ServedBy)
}

func (d *duties) stream(t *testing.T) {
	require.NotEmpty(t, d.read(t, d.client.Stream(t.Context(), question("slow", "hello"))))
}

// framesOnTheReply asks as a client in any language may: one subscription, many
// messages, an empty one at the end.
func (d *duties) framesOnTheReply(t *testing.T) {
	subject := subjects.Complete("slow")
	if d.says {
		subject = subjects.CompleteOf("slow", d.tenant(d.user))
	}
	sub, err := d.nc.SubscribeSync(d.nc.NewInbox())
	require.NoError(t, err)
	require.NoError(t, d.nc.PublishRequest(subject, sub.Subject, []byte(`{"prompt":"hello","stream":true}`)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := 0; ; n++ {
		msg, err := sub.NextMsgWithContext(ctx)
		require.NoError(t, err)
		if len(msg.Data) == 0 {
			require.Greater(t, n, 30)
			return
		}
	}
}

func (d *duties) read(t *testing.T, frames func(func(llm.Frame, error) bool)) string {
	t.Helper()
	var text strings.Builder
	for f, err := range frames {
		require.NoError(t, err)
		text.WriteString(f.Text)
	}
	return text.String()
}

// resume has a second connection read an answer that the first one asked for.
func (d *duties) resume(t *testing.T) {
	req := question("slow", "hello")
	req.ID, req.Resumable = "resumed", true
	var late string
	for f, err := range d.client.Stream(t.Context(), req) {
		require.NoError(t, err)
		if f.Type == llm.FrameDelta && late == "" {
			late = d.late(t, req.ID)
		}
	}
	require.NotEmpty(t, late)
}

// late reads an answer on a connection of its own. Frames are stored a moment
// after they are sent, so the first look may find none.
func (d *duties) late(t *testing.T, id string) (text string) {
	t.Helper()
	c := d.site.client(t, d.dial(t, d.user), d.user)
	require.Eventually(t, func() bool {
		for f, err := range c.Resume(t.Context(), id, 1) {
			if errors.Is(err, llm.ErrUnknownRequest) {
				return false
			}
			require.NoError(t, err)
			text += f.Text
		}
		return true
	}, patience, tick)
	return text
}

func (d *duties) cancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	before, gone := d.sim.Calls("sim-hang"), d.sim.Stats().Cancelled["sim-hang"]
	ended := make(chan error, 1)
	go func() {
		_, err := d.client.Complete(ctx, question("silent", "hello"))
		ended <- err
	}()
	require.Eventually(t, func() bool { return d.sim.Calls("sim-hang") > before }, patience, tick)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return d.sim.Stats().Cancelled["sim-hang"] == gone+1 }, patience, tick)
}

// idempotency has a key's requests meet on both workers, so that one follows the
// call of the other.
func (d *duties) idempotency(t *testing.T) {
	const together = 8
	before := d.sim.Calls("sim-ok-t40-g4ms")
	texts := make(chan string, together)
	for range together {
		go func() {
			req := question("slow", "hello")
			req.IdempotencyKey = "key-1"
			resp, err := d.client.Complete(t.Context(), req)
			if err != nil {
				texts <- err.Error()
				return
			}
			texts <- resp.Content
		}()
	}
	first := <-texts
	for range together - 1 {
		require.Equal(t, first, <-texts)
	}
	require.Equal(t, before+1, d.sim.Calls("sim-ok-t40-g4ms"))
}

// jobs gets an answer and a dead letter, through the subjects of a caller where
// it may use jobs, and otherwise through the operator.
func (d *duties) jobs(t *testing.T) {
	c := d.client
	if !d.site.jobs {
		var err error
		c, err = client.New(d.operator, client.WithTenant(d.tenant(d.user)), client.WithTimeout(patience))
		require.NoError(t, err)
	}
	good, err := c.Submit(t.Context(), question("default", "hello"))
	require.NoError(t, err)
	req := question("default", "hello")
	req.DataClass = "secret" // for which no target is approved
	bad, err := c.Submit(t.Context(), req)
	require.NoError(t, err)
	for range 2 { // live, and as it is stored
		resp, err := c.Result(t.Context(), good)
		require.NoError(t, err)
		require.NotEmpty(t, resp.Content)
		_, err = c.Result(t.Context(), bad)
		require.ErrorIs(t, err, llm.ErrPolicyDenied)
	}
}

// breaker opens one, has it probed, and closes it; then once more, where the
// lease of the first probe and the record have been.
func (d *duties) breaker(t *testing.T) {
	ask := func() { _, _ = d.client.Complete(t.Context(), question("fragile", "hello")) }
	key := subjects.BreakerKey("sim", "fragile")
	becomes := func(state string) {
		require.Eventually(t, func() bool {
			ask()
			e, err := d.buckets.Breakers.Get(t.Context(), key)
			return err == nil && strings.Contains(string(e.Value), state)
		}, patience, tick)
	}
	for range 2 {
		require.NoError(t, d.sim.Control(sim.Rule{Fault: "status-503", Model: "fragile"}))
		becomes(`"open"`)
		d.sim.Clear()
		becomes(`"closed"`)
		require.NoError(t, d.buckets.Breakers.Delete(t.Context(), key, 0))
	}
}

func (d *duties) switches(t *testing.T) {
	off := func() bool {
		_, err := d.client.Complete(t.Context(), question("slow", "hello"))
		return err != nil && strings.Contains(err.Error(), string(llm.CodeSwitchedOff))
	}
	_, err := d.buckets.Flags.Put(t.Context(), "feature.slow", []byte("off"))
	require.NoError(t, err)
	require.Eventually(t, off, patience, tick)
	require.NoError(t, d.buckets.Flags.Delete(t.Context(), "feature.slow", 0))
	require.Eventually(t, func() bool { return !off() }, patience, tick)
}

func (d *duties) configuration(t *testing.T) {
	_, parts, err := config.Parse("policy", []byte(strings.ReplaceAll(policyOf(d.sim), "  silent:", "  pushed: {data_class: open, targets: [{provider: sim, model: good}]}\n  silent:")))
	require.NoError(t, err)
	_, err = config.Push(t.Context(), d.buckets.Features, nil, parts)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := d.client.Complete(t.Context(), question("pushed", "hello"))
		return err == nil
	}, patience, tick)
}

// fallbacks has a request served from the cache, and another handed to a job.
func (d *duties) fallbacks(t *testing.T) {
	_, err := d.buckets.Flags.Put(t.Context(), "feature.default", []byte("off"))
	require.NoError(t, err)
	served := func(text string) llm.FallbackMode {
		resp, err := d.client.Complete(t.Context(), question("default", text))
		require.NoError(t, err)
		return resp.Fallback
	}
	// Both workers know of the switch when neither has asked a model for a while.
	require.Eventually(t, func() bool {
		for range 10 {
			if served("hello") != llm.FallbackCached {
				return false
			}
		}
		return true
	}, patience, tick)
	require.Equal(t, llm.FallbackQueued, served("unheard of"))
	require.NoError(t, d.buckets.Flags.Delete(t.Context(), "feature.default", 0))
}

// discovery asks workers who they are and how they are.
func (d *duties) discovery(t *testing.T) {
	for _, subject := range []string{subjects.Status, "$SRV.PING", "$SRV.STATS.llmbus"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		msg, err := d.operator.RequestWithContext(ctx, subject, nil)
		require.NoError(t, err, subject)
		require.NotEmpty(t, msg.Data)
	}
}
