package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/kv"
)

// completer proposes words for the shell; it stays silent where NATS is away.
type completer = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// nth proposes words for the argument of each place, and none behind them.
func nth(places ...func(context.Context) []string) completer {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(places) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return matching(places[len(args)](c.Context()), begun)
	}
}

// each proposes words for every argument alike, but not one that is there.
func each(words func(context.Context) []string) completer {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(words(c.Context()), func(w string) bool { return slices.Contains(args, w) })
		return matching(left, begun)
	}
}

func matching(words []string, begun string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, w := range words {
		if strings.HasPrefix(w, begun) {
			list = append(list, w)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag proposes words for the value of a flag.
func completeFlag(c *cobra.Command, flag string, words func(context.Context) []string) {
	if err := c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return matching(words(c.Context()), begun)
	}); err != nil {
		panic(err) // the command has no such flag: a fault of this program
	}
}

// words are fixed proposals.
func words(list ...string) func(context.Context) []string {
	return func(context.Context) []string { return slices.Clone(list) }
}

// someStatus is what the first worker to answer says.
func someStatus(ctx context.Context) app.Status {
	nc, err := connect()
	if err != nil {
		return app.Status{}
	}
	defer nc.Close()
	reports, err := gather(ctx, nc, 1)
	if err != nil || len(reports) == 0 {
		return app.Status{}
	}
	return reports[0].Details
}

func featureWords(ctx context.Context) []string {
	var list []string
	for _, f := range someStatus(ctx).Features {
		list = append(list, f.Name)
	}
	return list
}

// flagWords are the flags that switch something that there is.
func flagWords(ctx context.Context) []string {
	list := []string{kv.AllKey, kv.FailoverKey("", "")}
	status := someStatus(ctx)
	for _, f := range status.Features {
		list = append(list, kv.FeatureKey(f.Name), kv.FailoverKey(f.Name, ""))
		for _, t := range f.Targets {
			provider, model, _ := strings.Cut(t, "/")
			list = append(list, kv.ProviderKey(provider), kv.ModelKey(provider, model))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// setWords are the flags that are set.
func setWords(ctx context.Context) []string {
	var list []string
	_ = withBuckets(ctx, func(ctx context.Context, b *kv.Buckets) error {
		set, err := kv.ReadFlags(ctx, b.Flags)
		if err != nil {
			return err
		}
		for _, f := range set.List() {
			list = append(list, f.Key)
		}
		list = append(list, set.Malformed()...)
		return nil
	})
	return list
}

// withCompletion shows cobra's own command that writes completion scripts, and
// has it refuse what it does not know.
func withCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "completion" })
	c := root.Commands()[i]
	c.Short = "Write a completion script for bash, zsh, fish or powershell"
	c.Example = "  source <(broker completion bash)\n  broker completion zsh > \"${fpath[1]}/_broker\"\n  broker completion fish | source"
	for _, shell := range c.Commands() {
		shell.Args = noArguments
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		return usageError{fmt.Errorf("%s needs bash, zsh, fish or powershell; see %s --help", c.CommandPath(), c.CommandPath())}
	}
}

// eventNames are the names of events that this version publishes.
func eventNames() []string {
	return []string{chain.EventRequestStarted, chain.EventRequestSucceeded, chain.EventRequestFailed,
		chain.EventFailoverAttempted, chain.EventFailoverSucceeded, chain.EventFailoverExhausted,
		chain.EventOutputInvalid, chain.EventStreamInterrupted, "circuit_opened", "circuit_half_open", "circuit_closed", "kill_switch_flipped", "limit_exceeded"}
}
