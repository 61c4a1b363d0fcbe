package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/gateway"
	"github.com/llmbus/llmbus/internal/app"
)

// httpVariable is the setting that --http stands for.
const httpVariable = "LLMBUS_HTTP"

func newGateway(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the OpenAI API over HTTP, beside or apart from workers",
		Long: `Gateway takes requests of OpenAI clients and hands them to the workers of the fleet. The model of a request is the name of a feature:
set the base URL of a client to http://127.0.0.1:8080/v1 and its model to one that GET /v1/models lists.

Settings come from the environment, with those of NATS and of logging as broker serve has them:
  LLMBUS_HTTP             host:port (127.0.0.1:8080); without a host the loopback interface
  LLMBUS_HTTP_KEYS_FILE   file of API keys, a line for each: <tenant> sha256:<hash>; broker gateway key makes them
  LLMBUS_HTTP_KEYS        the same in the variable itself, separated by commas
  LLMBUS_ADMIN_KEY        lets those who have it flip switches and replay dead letters on the page at /; at least 16 characters
  LLMBUS_ADMIN_KEY_FILE   path of a file with the same in its first line
  LLMBUS_MAX_TIMEOUT      the longest a request may take (10m)
  LLMBUS_SHUTDOWN_GRACE   time for what is in flight (30s)
  LLMBUS_METRICS          address where Prometheus reads /metrics; a loopback LLMBUS_HTTP has it as well

The page at / shows the fleet as it changes. Without keys nobody is asked who he is, and only loopback addresses are served.`,
		Example: `  broker gateway
  LLMBUS_NATS_URL=nats://nats:4222 LLMBUS_HTTP_KEYS_FILE=keys broker gateway --http 0.0.0.0:8080
  broker gateway key acme >> keys`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			env, err := settings(c)
			if err != nil {
				return err
			}
			log, end := env.NewLog(io.err)
			defer end()
			return app.New(env, app.Options{Version: version, Command: command(), Out: io.out, Log: log}).RunGateway(c.Context())
		},
	}
	addHTTP(c)
	c.AddCommand(newGatewayKey(io))
	return c
}

func newGatewayKey(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "key <tenant>",
		Short: "Make an API key",
		Long: "Key prints the line for LLMBUS_HTTP_KEYS_FILE to the standard output and the key itself, which is kept nowhere, to the standard error.\n" +
			"The tenant is 1 to 64 of A-Z, a-z, 0-9, _ and -; a fleet without tenants has the tenant \"-\".",
		Example: "  broker gateway key acme >> keys",
		Args:    arguments(1, 1, "a tenant"),
		RunE: func(_ *cobra.Command, args []string) error {
			secret, line, err := gateway.NewKey(args[0])
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintln(io.out, line)
			fmt.Fprintln(io.err, secret)
			return nil
		},
	}
}

func addHTTP(c *cobra.Command) {
	c.Flags().String("http", "", "serve the OpenAI API on this host:port; instead of "+httpVariable)
}
