package main

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

const flagHelp = `A flag is one of
  all                            every request
  feature.<feature>              one feature
  provider.<provider>            every model of a provider
  model.<provider>.<model>       one model
  tenant.<tenant>                one tenant
  feature.<feature>.tenant.<tenant>
  failover, failover.<feature>, failover.<feature>.tenant.<tenant>
                                 automatic failover only
A flag that is not set is on. Every worker obeys within milliseconds; what is in flight ends, unless --now is given.`

func newFlags(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "flags",
		Short:   "List, set and clear the kill switches",
		Long:    flagHelp,
		Example: "  broker flags\n  broker flags set feature.support off --reason \"incident 123\"\n  broker flags clear feature.support",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				set, err := kv.ReadFlags(ctx, b.Flags)
				if err != nil {
					return err
				}
				return listFlags(io, set, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(newFlagsSet(io), newFlagsClear())
	return c
}

func newFlagsSet(io streams) *cobra.Command {
	f := kv.Flag{}
	c := &cobra.Command{
		Use:   "set <flag> on|off",
		Short: "Switch something off or on again",
		Long:  flagHelp,
		Example: "  broker flags set feature.support off --reason \"incident 123\"\n" +
			"  broker flags set model.openai.gpt-4.1 off --now\n" +
			"  nats kv put llm_flags feature.support off      # the same without this program",
		Args: arguments(2, 2, "a flag and on or off"),
		RunE: func(c *cobra.Command, args []string) error {
			f.Key = flagKey(args[0])
			switch args[1] {
			case "on":
				f.On = true
			case "off":
			default:
				return usageError{fmt.Errorf("%q is neither on nor off", args[1])}
			}
			if len(kv.ParseFlags(map[string]string{f.Key: ""}).Malformed()) > 0 {
				return usageError{fmt.Errorf("%q is no flag; see %s --help", args[0], c.CommandPath())}
			}
			err := withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				_, err := kv.SetFlag(ctx, b.Flags, f)
				return err
			})
			if err == nil && !f.On && switchesNothing(c.Context(), f.Key) {
				fmt.Fprintf(io.err, "%s is set, but no feature has that name or asks that target now: look for a typing error\n", f.Key)
			}
			return err
		},
	}
	c.ValidArgsFunction = nth(flagWords, words("on", "off"))
	c.Flags().StringVar(&f.Reason, "reason", "", "why, for those who list the flags")
	c.Flags().StringVar(&f.By, "by", operator(), "who, in one word")
	c.Flags().BoolVar(&f.Now, "now", false, "stop what is in flight, too")
	return c
}

// switchesNothing tells whether a worker answers and knows nothing of that name.
// Nobody has a list of tenants.
func switchesNothing(ctx context.Context, key string) bool {
	if strings.HasPrefix(key, "tenant.") {
		return false
	}
	key, _, _ = strings.Cut(key, ".tenant.")
	known := flagWords(ctx)
	return len(known) > 2 && !slices.Contains(known, key) // all and failover are always there
}

func newFlagsClear() *cobra.Command {
	return &cobra.Command{
		Use:     "clear <flag>…",
		Short:   "Remove flags, which leaves on what they switched",
		Example: "  broker flags clear feature.support",
		Args:    arguments(1, 100, "a flag"),

		ValidArgsFunction: each(setWords),
		RunE: func(c *cobra.Command, args []string) error {
			return withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				for _, arg := range args {
					if err := kv.ClearFlag(ctx, b.Flags, flagKey(arg)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// operator is who runs this program, if the system knows.
func operator() string {
	who, err := user.Current()
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(who.Username), "-")
}

// flagKey escapes the names in a flag as people write it: a model may hold dots
// and slashes. What is escaped already stays.
func flagKey(text string) string {
	head, rest, _ := strings.Cut(text, ".")
	if rest == "" {
		return text
	}
	var names []string
	switch head {
	case "model":
		provider, model, _ := strings.Cut(rest, ".")
		names = []string{provider, model}
	case "feature", "failover":
		feature, tenant, of := strings.Cut(rest, ".tenant.")
		if of {
			return head + "." + escaped(feature) + ".tenant." + escaped(tenant)
		}
		names = []string{feature}
	default:
		names = []string{rest}
	}
	for _, n := range names {
		head += "." + escaped(n)
	}
	return head
}

func escaped(name string) string {
	if _, ok := subjects.Unescape(name); ok || name == "" {
		return name
	}
	return subjects.Escape(name)
}

// listed is a flag as JSON.
type listed struct {
	Flag     string    `json:"flag"`
	On       bool      `json:"on"`
	Now      bool      `json:"now,omitempty"`
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Set      time.Time `json:"set"` // by the server's clock
	Revision uint64    `json:"revision"`
}

func listFlags(io streams, set *kv.FlagSet, asJSON bool) error {
	list := []listed{}
	for _, f := range set.List() {
		list = append(list, listed{f.Key, f.On, f.Now, f.By, f.Reason, f.Set, f.Revision})
		if f.Unrecognised {
			fmt.Fprintf(io.err, "%s counts as off: its value is neither on nor off\n", f.Key)
		}
	}
	for _, key := range set.Malformed() {
		fmt.Fprintf(io.err, "%q has no effect: it names nothing; remove it with: broker flags clear %q\n", key, key)
	}
	if asJSON {
		return printJSON(io.out, list)
	}
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FLAG\tIS\tSET\tBY\tREASON")
	for _, f := range list {
		is := "off"
		switch {
		case f.On:
			is = "on"
		case f.Now:
			is = "off now"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Flag, is, f.Set.Local().Format(time.DateTime), cmp.Or(printable(f.By), "-"), cmp.Or(printable(f.Reason), "-"))
	}
	return w.Flush()
}
