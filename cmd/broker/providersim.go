package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/sim"
)

func newProviderSim(io streams) *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "provider-sim",
		Short: "Simulate a provider that fails on demand",
		Long: "Provider-sim speaks the OpenAI, Anthropic and Ollama protocols on a real socket. The model's name says what happens:\n\n" + sim.Help() +
			"\nA rule set with POST /control wins over the name; GET /control, DELETE /control and GET /stats show and end it.",
		Example: `  broker provider-sim --listen 127.0.0.1:9090
  OPENAI_API_KEY=x OPENAI_BASE_URL=http://127.0.0.1:9090 OPENAI_MODEL=sim-ok-t60-g20ms broker
  curl -d '{"fault":"status-503","for":"30s"}' http://127.0.0.1:9090/control`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := sim.New(sim.Config{Addr: listen})
			if err != nil {
				return fmt.Errorf("%w; choose another address with --listen", err)
			}
			fmt.Fprintf(io.out, "provider-sim on %s\n", s.URL())
			return s.Run(c.Context())
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9090", "address to listen on")
	return c
}
