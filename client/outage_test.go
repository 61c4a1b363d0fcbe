package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// A caller that is cut off for longer than the silence it bears has no dead
// worker: its worker notices and stops, and the request is sent once more when
// there is a connection again.
func TestACutCallerAsksAgainWhenItCan(t *testing.T) {
	for name, ask := range map[string]func(*testing.T, *client.Client) (string, error){
		"whole": func(t *testing.T, c *client.Client) (string, error) {
			resp, err := c.Complete(t.Context(), ask())
			if err != nil {
				return "", err
			}
			return resp.Content, nil
		},
		"streamed": func(t *testing.T, c *client.Client) (string, error) {
			frames, err := collect(c.Stream(t.Context(), ask()))
			return text(frames), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				p := fake.New(fake.Hangs(), fake.Answer("a"))
				r := newRig(t)
				r.work(t, model{p})
				c, d := r.reader(t, client.WithSilence(3*time.Second))
				time.AfterFunc(2*time.Second, func() { d.cut(time.Minute) })
				began := time.Now()
				got, err := ask(t, c)
				require.NoError(t, err)
				require.Equal(t, "a", got)
				require.InDelta(t, 65*time.Second, time.Since(began), float64(5*time.Second))
				synctest.Wait()
				require.Len(t, p.Calls(), 2)
				require.ErrorIs(t, p.Calls()[0].Cause, llm.ErrCancelled)
			})
		})
	}
}
