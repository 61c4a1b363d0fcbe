package agents

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// Config of a Face. Fields without a default are required.
type Config struct {
	// Conn is not closed by the face.
	Conn *nats.Conn

	// Completer answers the prompts, as one streamed request each.
	Completer llm.Completer

	Owner      string           // of all agents, as their subjects say; see subjects.AgentOwnerRule
	Version    string           // semantic version of the services; default 0.0.0
	Inboxes    subjects.Inboxes // where answers may go; the usual inboxes by default
	Prompts    int              // at once, over all agents; default 1024
	MaxTimeout time.Duration    // longest time of one prompt; default 10m
	KeepAlive  time.Duration    // longest silence of an answer; default 10s
	Heartbeat  time.Duration    // between two signs of life of an agent, in whole seconds; default 10s
	Grace      time.Duration    // what is in flight at shutdown may take this long; default 30s
	Log        *slog.Logger
}

// longestSilence is what callers of this protocol take for a dead agent, by
// default.
const longestSilence = time.Minute

// Validate reports the first setting that cannot apply.
func (c *Config) Validate() error {
	switch {
	case c.Conn == nil:
		return fmt.Errorf("agents: Conn must be set")
	case c.Completer == nil:
		return fmt.Errorf("agents: Completer must be set")
	case !subjects.ValidAgentOwner(c.Owner):
		return fmt.Errorf("agents: Owner must be %s", subjects.AgentOwnerRule)
	case c.Prompts < 0:
		return fmt.Errorf("agents: Prompts must be 1 or more")
	case c.MaxTimeout < 0, c.Grace < 0:
		return fmt.Errorf("agents: MaxTimeout and Grace must not be negative")
	case c.KeepAlive < 0 || c.KeepAlive >= longestSilence:
		return fmt.Errorf("agents: KeepAlive must be above 0 and below %s", longestSilence)
	case c.Heartbeat < 0 || c.Heartbeat%time.Second != 0:
		return fmt.Errorf("agents: Heartbeat must be in whole seconds, 1s at least")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Version = cmp.Or(c.Version, "0.0.0")
	c.Prompts = cmp.Or(c.Prompts, 1024)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, 10*time.Minute)
	c.KeepAlive = cmp.Or(c.KeepAlive, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.Grace = cmp.Or(c.Grace, 30*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
