package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/schemas"
)

func newConformance(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "conformance",
		Short: "Judge whether a worker or a client keeps to the protocol",
		Long: "Conformance judges workers and clients in any language over NATS, and prints what the protocol is made of.\n" +
			"docs/conformance.md says what is judged and how a client under test takes its tasks.",
		Example: `  broker conformance worker --feature default
  broker conformance schema request`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("%s needs worker, client, schema or asyncapi; see %s --help", c.CommandPath(), c.CommandPath())}
		},
	}
	c.AddCommand(newConformanceWorker(io), newConformanceClient(io), newSchema(io), newAsyncAPI(io))
	return c
}

func newConformanceWorker(io streams) *cobra.Command {
	var cfg conformance.WorkerConfig
	var match string
	c := &cobra.Command{
		Use:   "worker",
		Short: "Send requests to live workers and judge the answers",
		Long: "Worker asks the live workers of LLMBUS_NATS_URL and judges every message that comes back. It asks models some\n" +
			"20 times, stores two jobs and flips no switch. It exits with 1 if a check fails.",
		Example: `  broker conformance worker --feature default
  broker conformance worker --feature support --slow essay --run 'cancel|stream'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return judged(io.out, match, func(only *regexp.Regexp, nc *nats.Conn, tell func(conformance.Result)) error {
				cfg.Conn, cfg.Match = nc, only
				if err := cfg.Validate(); err != nil {
					return usageError{err}
				}
				return conformance.Worker(c.Context(), cfg, tell)
			})
		},
	}
	c.Flags().StringVar(&cfg.Feature, "feature", "default", "a feature that answers text")
	c.Flags().StringVar(&cfg.Slow, "slow", "", "a feature whose answers take 2 s at least; without it some checks are left out")
	c.Flags().StringVar(&match, "run", "", "make the checks that match this regular expression only")
	return c
}

func newConformanceClient(io streams) *cobra.Command {
	var cfg conformance.ClientConfig
	var match string
	c := &cobra.Command{
		Use:   "client",
		Short: "Play a worker, well and badly, and judge what a client makes of it",
		Long: "Client waits for a client under test on the server of LLMBUS_NATS_URL, which must have no workers, gives it a task\n" +
			"for each script and judges its report. It exits with 1 if a check fails.",
		Example: "  broker conformance client & python my_client_under_test.py",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return judged(io.out, match, func(only *regexp.Regexp, nc *nats.Conn, tell func(conformance.Result)) error {
				cfg.Conn, cfg.Match = nc, only
				return conformance.Client(c.Context(), cfg, tell)
			})
		},
	}
	c.Flags().StringVar(&cfg.Control, "control", conformance.ControlSubject, "subject on which the client takes tasks")
	c.Flags().DurationVar(&cfg.Start, "start", 30*time.Second, "the longest wait for the client")
	c.Flags().StringVar(&match, "run", "", "play the scripts that match this regular expression only")
	return c
}

// judged runs a kit, prints its results and fails if one of them did.
func judged(out io.Writer, match string, run func(*regexp.Regexp, *nats.Conn, func(conformance.Result)) error) error {
	only, err := regexp.Compile(match)
	if err != nil {
		return usageError{fmt.Errorf("--run: %w", err)}
	}
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	var passed, failed, left int
	err = run(only, nc, func(r conformance.Result) {
		switch {
		case r.LeftOut != "":
			left++
		case r.Err != nil:
			failed++
		default:
			passed++
		}
		fmt.Fprintln(out, strings.ReplaceAll(r.String(), "\n", "\n       "))
	})
	fmt.Fprintf(out, "%d passed, %d failed, %d left out\n", passed, failed, left)
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d checks failed", failed)
	case passed == 0:
		return usageError{fmt.Errorf("no check matches --run %q", match)}
	}
	return nil
}

func newSchema(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [name]",
		Short: "Print the JSON Schema of a message, or list the schemas",
		Example: `  broker conformance schema
  broker conformance schema request > request.schema.json`,
		Args: arguments(0, 1, "at most one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(io.out, strings.Join(schemas.Names(), "\n"))
				return err
			}
			text, err := schemas.Text(args[0])
			if err != nil {
				return usageError{err}
			}
			_, err = io.out.Write(text)
			return err
		},
	}
}

func newAsyncAPI(io streams) *cobra.Command {
	return &cobra.Command{
		Use:     "asyncapi",
		Short:   "Print the protocol as an AsyncAPI 3 document",
		Example: "  broker conformance asyncapi > asyncapi.json",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := conformance.AsyncAPI(conformance.Version)
			if err == nil {
				_, err = io.out.Write(text)
			}
			return err
		},
	}
}
