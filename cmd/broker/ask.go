package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
)

// maxQuestion bounds what is read from the standard input.
const maxQuestion = 8 << 20

// asking is one run of the ask command.
type asking struct {
	streams
	stream, json bool
	system, key  string
	tenant       string
	timeout      time.Duration
}

func newAsk(io streams) *cobra.Command {
	a := &asking{streams: io}
	c := &cobra.Command{
		Use:   "ask <feature> [text]",
		Short: "Ask a feature and print its answer",
		Long: "Ask sends one question and prints the answer to the standard output, and who gave it to the standard error.\n" +
			"Without a text, or with -, the question is read from the standard input.",
		Example: `  broker ask default "hello"
  broker ask --stream default "tell me a story"
  git diff | broker ask default --system "review this change"
  broker ask --json default "hello" | jq .usage`,
		Args: arguments(1, 2, "a feature and a text"),
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), args) },
	}
	c.ValidArgsFunction = nth(featureWords)
	c.Flags().BoolVar(&a.stream, "stream", false, "print the answer as it comes")
	c.Flags().BoolVar(&a.json, "json", false, "print the response as JSON; with --stream, each frame on a line")
	c.Flags().StringVar(&a.system, "system", "", "system prompt")
	c.Flags().StringVar(&a.key, "idempotency-key", "", "ask a model once for all requests with this key, and get the same answer again")
	c.Flags().StringVar(&a.tenant, "tenant", "", "ask for this tenant, of a fleet with LLMBUS_TENANTS")
	c.Flags().DurationVar(&a.timeout, "timeout", time.Minute, "the longest to wait")
	return c
}

func (a *asking) run(ctx context.Context, args []string) error {
	if a.timeout <= 0 {
		return usageError{errors.New("--timeout must be above 0")}
	}
	req, err := a.request(args)
	if err != nil {
		return err
	}
	nc, err := connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := someWorker(ctx, nc); err != nil {
		return err
	}
	var opts []client.Option
	if a.tenant != "" {
		opts = append(opts, client.WithTenant(a.tenant))
	}
	c, err := client.New(nc, opts...)
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, llm.ErrDeadline)
	defer cancel()
	if a.stream {
		return a.explain(a.streamed(ctx, c, req))
	}
	resp, err := c.Complete(ctx, req)
	if err != nil {
		return a.explain(err)
	}
	if a.json {
		return a.print(resp)
	}
	if resp.Job == nil {
		fmt.Fprintln(a.out, strings.TrimSuffix(resp.Content, "\n"))
	}
	a.credit(resp)
	return nil
}

func (a *asking) request(args []string) (*llm.Request, error) {
	text := "-"
	if len(args) > 1 {
		text = args[1]
	}
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(a.in, maxQuestion+1))
		if err != nil {
			return nil, fmt.Errorf("read the question: %w", err)
		}
		if len(data) > maxQuestion {
			return nil, usageError{fmt.Errorf("the question is longer than %d MiB", maxQuestion>>20)}
		}
		text = string(data)
	}
	if strings.TrimSpace(text) == "" {
		return nil, usageError{errors.New("the question is empty; write it after the feature, or to the standard input")}
	}
	req := &llm.Request{Feature: args[0], IdempotencyKey: a.key}
	if a.system != "" {
		req.Messages = append(req.Messages, message(llm.RoleSystem, a.system))
	}
	req.Messages = append(req.Messages, message(llm.RoleUser, text))
	return req, nil
}

func message(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Content: []llm.Part{{Type: llm.PartText, Text: text}}}
}

// streamed prints frames as they come.
func (a *asking) streamed(ctx context.Context, c *client.Client, req *llm.Request) error {
	attempt := 0
	for f, err := range c.Stream(ctx, req) {
		if err != nil {
			return err
		}
		if a.json {
			if err := a.line(&f); err != nil {
				return err
			}
			continue
		}
		switch f.Type {
		case llm.FrameStart:
			if attempt > 0 && f.Attempt > attempt {
				fmt.Fprintln(a.out)
				fmt.Fprintf(a.err, "[the answer above broke off; %s/%s begins again]\n", f.Provider, f.Model)
			}
			attempt = max(1, f.Attempt)
		case llm.FrameDelta:
			_, _ = io.WriteString(a.out, f.Text)
		case llm.FrameEnd:
			fmt.Fprintln(a.out)
			a.credit(f.Response)
		}
	}
	return nil
}

func (a *asking) print(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (a *asking) line(f *llm.Frame) error {
	text, err := f.AppendJSON(nil)
	if err == nil {
		_, err = a.out.Write(append(text, '\n'))
	}
	return err
}

// credit says who gave the answer.
func (a *asking) credit(r *llm.Response) {
	who := r.Provider + "/" + r.Model
	if r.Fallback != "" {
		who = fmt.Sprintf("%s fallback (%s)", r.Fallback, r.ServedBy)
	}
	notes := []string{who, fmt.Sprintf("%d ms", r.Timing.TotalMS)}
	if n := len(r.Attempts); n > 1 {
		notes = append(notes, fmt.Sprintf("%d attempts", n))
	}
	if u := r.Usage; u != nil && u.InputTokens != nil && u.OutputTokens != nil {
		notes = append(notes, fmt.Sprintf("%d + %d tokens", *u.InputTokens, *u.OutputTokens))
	}
	if r.CostUSD > 0 {
		notes = append(notes, fmt.Sprintf("$%.6f", r.CostUSD))
	}
	if r.Replayed {
		notes = append(notes, "replayed")
	}
	if r.Degraded {
		notes = append(notes, "degraded: KV was out of reach")
	}
	fmt.Fprintf(a.err, "[%s]\n", strings.Join(notes, ", "))
	if r.Job != nil {
		fmt.Fprintf(a.err, "[job %s makes the answer; it will be on %s]\n", r.Job.ID, r.Job.Result)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(a.err, "[warning: %s]\n", w)
	}
}

// explain adds the attempts to an error, for those who must find its reason.
func (a *asking) explain(err error) error {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		for _, t := range e.Attempts {
			fmt.Fprintf(a.err, "[%s/%s: %s after %d ms]\n", t.Provider, t.Model, t.Class, t.MS)
		}
	}
	return err
}
