package chain_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// diary is a Follower that writes down what it is told, and where.
type diary struct {
	name  string
	lines *[]string
}

type within struct{}

func (d diary) note(ctx context.Context, format string, args ...any) context.Context {
	inside, _ := ctx.Value(within{}).(string)
	*d.lines = append(*d.lines, d.name+" "+fmt.Sprintf(format, args...)+" in "+inside)
	return context.WithValue(ctx, within{}, inside+"/"+d.name)
}

func (d diary) RequestBegan(ctx context.Context, req *llm.Request) context.Context {
	return d.note(ctx, "began %s", req.Feature)
}

func (d diary) RequestEnded(ctx context.Context, _ *llm.Request, e chain.Ending) {
	d.note(ctx, "ended %d %v", len(e.Attempts()), e.Error == nil)
}

func (d diary) AttemptBegan(ctx context.Context, _ *llm.Request, provider, model string) context.Context {
	return d.note(ctx, "calls %s/%s", provider, model)
}

func (d diary) AttemptEnded(ctx context.Context, _ *llm.Request, a *llm.Attempt) {
	d.note(ctx, "heard %s %s", a.Provider, a.Class)
}

func TestFollowersGoAlong(t *testing.T) {
	for way, do := range both {
		t.Run(way, func(t *testing.T) {
			rig := newRig(t, nil, fake.New(fake.FailsWith(llm.OutcomeConnect)), fake.New())
			var lines []string
			rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Followers: []chain.Follower{diary{"x", &lines}, diary{"y", &lines}}})
			rig.Load([]chain.Feature{rig.feature})
			require.Nil(t, do(t.Context(), rig, ask()).err)
			require.Equal(t, []string{
				"x began f in ", "y began f in /x",
				"x calls a/m in /x/y", "y calls a/m in /x/y/x", "y heard a connect in /x/y/x/y", "x heard a connect in /x/y/x/y",
				"x calls b/m in /x/y", "y calls b/m in /x/y/x", "y heard b ok in /x/y/x/y", "x heard b ok in /x/y/x/y",
				"y ended 2 true in /x/y", "x ended 2 true in /x/y",
			}, lines)
		})
	}
}
