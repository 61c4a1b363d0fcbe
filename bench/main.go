package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is a child of the comparison, if the first argument names one, or what the
// person asked for.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "mock":
			return runMock(ctx)
		case "nats":
			return runServer(ctx, args[1:])
		case "floor":
			return runFloor(ctx, args[1:])
		case "grow":
			return grow(ctx, args[1:])
		}
	}
	return compare(ctx, args)
}

// options of a comparison.
type options struct {
	rounds int
	span   time.Duration
	only   *regexp.Regexp
	broker string
	out    string
}

func compare(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each scenario")
	flags.DurationVar(&o.span, "d", 2*time.Second, "time measured of each side in a round")
	flags.StringVar(&o.broker, "broker", "", "a built broker; built from this module when empty")
	flags.StringVar(&o.out, "out", "", "add every single run to this file, one JSON object a line")
	only := flags.String("run", "", "run the scenarios whose name matches this expression")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not known; -h lists the flags", flags.Arg(0))
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.broker, err = build(ctx, dir, o.broker); err != nil {
		return err
	}
	l, err := startLab(ctx, setup{broker: o.broker, config: everyModel, workers: 1, inside: true, first: models()[0]})
	if err != nil {
		return err
	}
	defer l.close()
	for _, s := range scenarios {
		if !o.only.MatchString(s.name) {
			continue
		}
		results, err := l.rounds(ctx, s, o)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		report(os.Stdout, s, o, results)
	}
	return nil
}
