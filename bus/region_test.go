package bus_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
	"github.com/llmbus/llmbus/subjects"
)

// here answers in the name of a region.
type here struct {
	model
	region string
}

func (h here) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := h.model.Complete(ctx, req)
	if resp != nil {
		resp.Content = h.region
	}
	return resp, err
}

// serveIn runs a worker in a region until stop.
func serveIn(t *testing.T, region, url string) (stop func()) {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	w, err := bus.New(bus.Config{Conn: nc, Completer: here{model{fake.New(fake.Step{Pieces: []string{"hi"}})}, region}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	return func() {
		cancel()
		require.NoError(t, <-done)
		nc.Close()
	}
}

// A request stays in its region while a worker there takes it, and goes to another
// one when the last of them has left; when there is none anywhere, its caller is
// told. What a server knows of other regions is as old as a message takes from
// there: so long, a request that follows the last worker's leaving may find nobody
// or be lost, which is why the condition must become true and need not be at once.
func TestRequestsStayInTheirRegionWhileTheyCan(t *testing.T) {
	const delay = 30 * time.Millisecond
	names := []string{"eu", "us", "asia"}
	servers := natstest.Regions(t, delay, names...)
	leave := map[string]func(){}
	for i, name := range names {
		leave[name] = serveIn(t, name, servers[i].ClientURL())
	}
	nc, err := nats.Connect(servers[0].ClientURL())
	require.NoError(t, err)
	defer nc.Close()
	var took time.Duration
	ask := func() (region string, err error) {
		begun := time.Now()
		msg, err := nc.Request(subjects.Complete("chat"), []byte(`{"prompt":"hi"}`), time.Second)
		if err != nil {
			return "", err
		}
		took = time.Since(begun)
		resp, err := llm.DecodeReply(msg.Data)
		require.NoError(t, err)
		return resp.Content, nil
	}
	answeredBy := func(left ...string) (region string) {
		require.Eventually(t, func() bool {
			region, err = ask()
			return err == nil && slices.Contains(left, region)
		}, 10*time.Second, time.Millisecond, "%v do not answer", left)
		return region
	}
	for range 50 {
		region, err := ask()
		require.NoError(t, err)
		require.Equal(t, "eu", region)
	}
	leave["eu"]()
	second := answeredBy("us", "asia")
	require.GreaterOrEqual(t, took, 2*delay, "it went to another region and came back")
	leave[second]()
	third := answeredBy(slices.DeleteFunc([]string{"us", "asia"}, func(r string) bool { return r == second })...)
	leave[third]()
	require.Eventually(t, func() bool { _, err := ask(); return errors.Is(err, nats.ErrNoResponders) }, 10*time.Second, 10*time.Millisecond)
}
