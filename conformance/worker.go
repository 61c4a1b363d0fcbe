package conformance

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/subjects"
)

// WorkerConfig says how live workers are judged.
type WorkerConfig struct {
	Conn     *nats.Conn
	Feature  string         // any feature that answers text; required
	Slow     string         // a feature whose answers take 2 s at least; empty leaves out what needs one
	Match    *regexp.Regexp // the checks to make; nil makes all
	Patience time.Duration  // the longest wait for one message; default 10s
}

// Validate reports the first setting that cannot apply.
func (c *WorkerConfig) Validate() error {
	switch {
	case c.Conn == nil:
		return fmt.Errorf("conformance: Conn must be set")
	case !subjects.ValidFeature(c.Feature):
		return fmt.Errorf("conformance: the feature must be %s", subjects.FeatureRule)
	case c.Slow != "" && !subjects.ValidFeature(c.Slow):
		return fmt.Errorf("conformance: the slow feature must be %s", subjects.FeatureRule)
	case c.Patience < 0:
		return fmt.Errorf("conformance: Patience must not be negative")
	}
	return nil
}

// quiet is how long a message that must not come is waited for.
const quiet = 300 * time.Millisecond

// Worker judges the workers that answer on cfg.Conn and tells each result as it
// is known. Its error says why the run could not go on. It asks models, stores a
// few jobs and flips no switch.
func Worker(ctx context.Context, cfg WorkerConfig, tell func(Result)) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	judge, err := NewJudge()
	if err != nil {
		return err
	}
	exchanges, err := exchangeChecks()
	if err != nil {
		return err
	}
	c := &caller{nc: cfg.Conn, judge: judge, feature: cfg.Feature, slow: cfg.Slow, patience: cmp.Or(cfg.Patience, 10*time.Second)}
	defer c.close()
	var checks []check
	for _, x := range exchanges {
		checks = append(checks, check{x.Name, func(ctx context.Context) error { return c.exchange(ctx, x) }})
	}
	checks = append(checks, c.streamChecks()...)
	checks = append(checks, c.slowChecks()...)
	checks = append(checks, c.jobChecks()...)
	checks = append(checks, c.fleetChecks()...)
	checks = append(checks, check{"nothing follows the last message of any check", func(ctx context.Context) error { return c.hush(ctx, quiet) }})
	return runAll(ctx, checks, cfg.Match, tell)
}
