package bus_test

import (
	"slices"
	"sync"
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

// answerTime is how long the model takes.
const answerTime = 200 * time.Millisecond

// twoTenants is a fleet of some workers of 32 slots, and a connection for each
// of two tenants.
func twoTenants(t testing.TB, workers int) (fleet []*bus.Worker, calm, wild *nats.Conn) {
	t.Helper()
	srv := natstest.Server(t)
	steps := fake.Func(func(int, *llm.Request) fake.Step { return fake.Step{Wait: answerTime, Pieces: []string{"a"}} })
	for range workers {
		w, _ := startWorker(t, natstest.Connect(t, srv), model{steps}, slotsOf(32), func(c *bus.Config) { c.Tenants = true })
		fleet = append(fleet, w)
	}
	return fleet, natstest.Connect(t, srv), natstest.Connect(t, srv)
}

// ask asks n times at once for a tenant and returns how long each took, and how
// many got no answer.
func askAs(t testing.TB, nc *nats.Conn, tenant string, n int) (took []time.Duration, refused int) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			began := time.Now()
			m := msg(`{"prompt":"hi"}`)
			m.Subject = subjects.CompleteOf("f", tenant)
			reply, err := nc.RequestMsg(m, 10*time.Second)
			mu.Lock()
			defer mu.Unlock()
			require.NoError(t, err)
			took = append(took, time.Since(began))
			if reply.Header.Get(subjects.HeaderError) != "" {
				refused++
			}
		})
	}
	group.Wait()
	return took, refused
}

// calmly has a tenant ask every 50 ms, a hundred times. Five requests are under way
// at most, which any worker has room for beside another tenant's share, even if
// chance gives all of them to one.
func calmly(t testing.TB, nc *nats.Conn) (p99 time.Duration, refused int) {
	var all []time.Duration
	var mu sync.Mutex
	var group sync.WaitGroup
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		<-tick.C
		group.Go(func() {
			took, no := askAs(t, nc, "CALM", 1)
			mu.Lock()
			defer mu.Unlock()
			all, refused = append(all, took...), refused+no
		})
	}
	group.Wait()
	slices.Sort(all)
	return all[len(all)*99/100], refused
}

// wildly has a tenant ask for several times what the fleet can do, and returns a
// function that ends it and tells how many were refused.
func wildly(t testing.TB, nc *nats.Conn, atOnce int) (end func() int) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	all := 0
	group.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			group.Go(func() {
				_, refused := askAs(t, nc, "WILD", atOnce)
				mu.Lock()
				defer mu.Unlock()
				all += refused
			})
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	return func() int {
		close(stop)
		group.Wait()
		return all
	}
}

// The flood of one tenant fills its share of every worker. Another tenant is
// never refused and waits no longer than alone, and no worker leaves.
func TestABurstOfOneTenantIsNotFeltByAnother(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		fleet, calm, wild := twoTenants(t, 2)
		alone, refused := calmly(t, calm)
		require.Zero(t, refused)
		end := wildly(t, wild, 100)
		beside, refused := calmly(t, calm)
		require.NotZero(t, end(), "the flood was more than the fleet could do")
		require.Zero(t, refused)
		require.LessOrEqual(t, beside, alone+alone/5)
		for _, w := range fleet {
			require.Zero(t, w.Stats().Left)
		}
	})
}

// BenchmarkNeighbour tells by how much the 99th percentile of one tenant rises
// while another floods a full fleet.
func BenchmarkNeighbour(b *testing.B) {
	_, calm, wild := twoTenants(b, 5)
	for b.Loop() {
		alone, _ := calmly(b, calm)
		end := wildly(b, wild, 200)
		beside, refused := calmly(b, calm)
		b.ReportMetric(float64(alone.Microseconds())/1000, "p99-alone-ms")
		b.ReportMetric(float64(beside.Microseconds())/1000, "p99-beside-ms")
		b.ReportMetric(100*float64(beside-alone)/float64(alone), "%-rise")
		b.ReportMetric(float64(refused), "refused")
		b.ReportMetric(float64(end()), "flood-refused")
	}
}
