package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
)

func TestDepth(t *testing.T) {
	held, release := make(chan struct{}, 2), make(chan struct{})
	r := newRig(t, func(_ context.Context, req *llm.Request, _ int) (*llm.Response, error) {
		held <- struct{}{}
		<-release
		return nil, llm.Errorf(llm.CodeInvalidRequest, "no")
	})
	for _, id := range []string{"a", "b", "c"} {
		r.publish(t, id)
	}
	r.start(t, func(c *jobs.Config) { c.Slots = 2 })
	<-held
	<-held
	depth, err := r.streams.Depth(t.Context())
	require.NoError(t, err)
	require.Equal(t, jobs.Depth{Pending: 3, InHand: 2}, depth)
	close(release)
	<-held
	require.Eventually(t, func() bool {
		depth, err = r.streams.Depth(t.Context())
		require.NoError(t, err)
		return depth == jobs.Depth{Dead: 3}
	}, 10*time.Second, 5*time.Millisecond)

	r.srv.Shutdown()
	gone, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = r.streams.Depth(gone)
	require.ErrorContains(t, err, "count jobs: ")
}
