package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/app"
)

// stands says for which variable of the environment a flag stands.
var stands = map[string]string{"http": httpVariable, "agents": agentsVariable}

// settings reads the environment, after what the flags say.
func settings(c *cobra.Command) (*app.Environment, error) {
	for name, variable := range stands {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			if err := os.Setenv(variable, f.Value.String()); err != nil {
				return nil, usageError{err}
			}
		}
	}
	return environment()
}

// agentsVariable is the setting that --agents stands for.
const agentsVariable = "LLMBUS_AGENTS"

func addAgents(c *cobra.Command) {
	c.Flags().String("agents", "", "also show each feature as an agent of this owner (Synadia Agent Protocol); instead of "+agentsVariable)
}
