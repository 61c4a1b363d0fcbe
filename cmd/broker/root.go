package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/llm"
)

// version is set by the linker in releases.
var version = "0.1.0"

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitConfig  = 3 // the configuration or the environment is refused
	exitNATS    = 4 // NATS cannot be reached, or closed the connection for good
	exitAnswer  = 5 // ask: the broker answered with an error
)

const exitHelp = `Exit codes: 0 done; 1 failure; 2 usage; 3 configuration or environment refused;
4 NATS out of reach; 5 the broker answered with an error (ask, explain).`

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is a command line that cannot be carried out.
type usageError struct{ error }

// configError is a configuration or an environment that was refused.
type configError struct{ error }

// natsError is a NATS server that cannot be reached.
type natsError struct{ error }

// run carries out a command line and returns its exit code.
func run(ctx context.Context, args []string, io streams) int {
	root := newRoot(io)
	root.SetArgs(expand(args))
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(io.err, "broker: %v\n", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case isA[usageError](err):
		return exitUsage
	case isA[configError](err), isA[*config.Error](err):
		return exitConfig
	case isA[natsError](err), errors.Is(err, app.ErrClosed):
		return exitNATS
	case isA[*llm.Error](err):
		return exitAnswer
	}
	return exitFailure
}

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// expand lets -version be written as Go programs know it.
func expand(args []string) []string {
	if len(args) == 1 && args[0] == "-version" {
		return []string{"--version"}
	}
	return args
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "broker",
		Short: "LLM request/reply broker on NATS",
		Long: "Broker answers LLM requests that any NATS client publishes to llm.complete.<feature>.\n" +
			"Without a command it serves.\n\n" + exitHelp,
		Example: "  broker                       # serve, with a NATS server of its own if LLMBUS_NATS_URL is not set\n" +
			"  broker ask default \"hello\"\n  broker demo",
		Version:       fullVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE:          serve(io),
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetVersionTemplate("broker {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(newServe(io), newAsk(io), newTop(io), newEvents(io), newBreakers(io), newFlags(io), newJobs(io), newUsage(io), newLimits(io), newExplain(io), newAudit(io), newConfig(io), newProviderSim(io), newDemo(io), newHealth(io))
	root.AddCommand(newGateway(io))
	root.AddCommand(newConformance(io))
	withCompletion(root)
	return root
}

// noArguments refuses words that a command does not take, and names the
// command that may have been meant.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s takes no argument %q", c.CommandPath(), args[0])
	if c.HasSubCommands() {
		text = fmt.Sprintf("unknown command %q", args[0])
	}
	if guesses := c.SuggestionsFor(args[0]); len(guesses) > 0 {
		text += "; did you mean " + strings.Join(guesses, " or ") + "?"
	}
	return usageError{fmt.Errorf("%s; see %s --help", text, c.CommandPath())}
}

// arguments demands a number of words and says which.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return usageError{fmt.Errorf("%s needs %s; see %s --help", c.CommandPath(), what, c.CommandPath())}
	}
}

// fullVersion names the commit of a build that has one.
func fullVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return version + "+" + s.Value[:12]
		}
	}
	return version
}

// command is how this program was called, for the next step that it suggests.
func command() string {
	path := os.Args[0]
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		return "go run ./cmd/broker"
	}
	if filepath.Base(path) == path {
		return path
	}
	if rel, err := filepath.Rel(".", path); err == nil && !strings.HasPrefix(rel, "..") {
		return "./" + filepath.ToSlash(rel)
	}
	return path
}

// environment reads the settings of this process.
func environment() (*app.Environment, error) {
	env, err := app.ReadEnvironment()
	if err != nil {
		return nil, configError{err}
	}
	return env, nil
}
