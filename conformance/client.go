package conformance

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// ControlSubject is where a client under test takes tasks by default.
const ControlSubject = "conformance.client"

// Do is what a client under test is asked to do.
type Do string

const (
	DoComplete    Do = "complete"     // a request and its whole answer
	DoStream      Do = "stream"       // a stream on llm.stream.<id>, whose whole answer comes on the reply subject
	DoStreamReply Do = "stream_reply" // a stream on the reply subject, with stream_to reply
	DoEnd         Do = "end"          // end yourself; no report is awaited
)

// Task is one thing to do, sent as a request to the control subject.
type Task struct {
	Name        string `json:"name"`
	Do          Do     `json:"do"`
	Feature     string `json:"feature,omitempty"`
	Prompt      string `json:"prompt,omitempty"`
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`   // give up after so long
	SilenceMS   int64  `json:"silence_ms,omitempty"`   // of a stream: take so much silence for a dead worker
	CancelAfter int    `json:"cancel_after,omitempty"` // of a stream: cancel when so many deltas were shown
}

// Outcome is how a task ended for the client's user.
type Outcome string

const (
	OutcomeAnswer       Outcome = "answer"        // with the text
	OutcomeError        Outcome = "error"         // with its code, and what was shown before as the text
	OutcomeNoResponders Outcome = "no_responders" // nobody serves the feature
	OutcomeBroken       Outcome = "broken"        // a gap, no end, silence, or no message that the protocol knows
	OutcomeUnsupported  Outcome = "unsupported"   // the client has no such thing
)

// Report is the client's reply to a task.
type Report struct {
	Outcome      Outcome  `json:"outcome"`
	Code         llm.Code `json:"code,omitempty"`
	Text         *string  `json:"text,omitempty"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
}

// fits reports whether a report says what was wanted; what a wanted report leaves
// out may be anything.
func (r Report) fits(want Report) bool {
	return r.Outcome == want.Outcome && (want.Code == "" || r.Code == want.Code) &&
		(want.RetryAfterMS == 0 || r.RetryAfterMS == want.RetryAfterMS) &&
		(want.Text == nil || r.Text != nil && *r.Text == *want.Text)
}

// ClientConfig says how a client under test is judged.
type ClientConfig struct {
	Conn    *nats.Conn     // to a server without workers: the judge plays them
	Control string         // where the client takes tasks; default ControlSubject
	Match   *regexp.Regexp // the scripts to play; nil plays all
	Start   time.Duration  // the longest wait for the client to take its first task; default 30s
}

// taskTime is what a client is given for one task. A little more is allowed
// before the judge gives up on its report.
const (
	taskTime    = 5 * time.Second
	taskSilence = 600 * time.Millisecond
	reportGrace = 10 * time.Second
)

// ErrWorkers is a server on which somebody else would answer.
var ErrWorkers = errors.New("workers are connected to this server; the judge plays them, so give it a server of its own")

// Client judges the client that takes tasks on the control subject and tells
// each result as it is known. It ends the client. Its error says why the run
// could not go on.
func Client(ctx context.Context, cfg ClientConfig, tell func(Result)) error {
	if cfg.Conn == nil {
		return fmt.Errorf("conformance: Conn must be set")
	}
	judge, err := NewJudge()
	if err != nil {
		return err
	}
	scripts, err := load[script](scriptsFile)
	if err != nil {
		return err
	}
	s := &stage{nc: cfg.Conn, judge: judge, control: cmp.Or(cfg.Control, ControlSubject)}
	if err := s.alone(ctx); err != nil {
		return err
	}
	if err := s.meet(ctx, cmp.Or(cfg.Start, 30*time.Second)); err != nil {
		return err
	}
	var checks []check
	for _, one := range scripts {
		checks = append(checks, check{string(one.Do) + ": " + one.Name, func(ctx context.Context) error { return s.perform(ctx, one) }})
	}
	err = runAll(ctx, checks, cfg.Match, tell)
	end, _ := json.Marshal(Task{Name: "end", Do: DoEnd}) // strings cannot fail
	return errors.Join(err, s.nc.Publish(s.control, end), s.flush(ctx))
}

// stage is where scripts are played.
type stage struct {
	nc      *nats.Conn
	judge   *Judge
	control string
}

// serverPatience bounds what only the server has to answer.
const serverPatience = 10 * time.Second

// alone refuses a server with workers.
func (s *stage) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	_, err := s.nc.RequestWithContext(ctx, subjects.Status, nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil
	case err == nil:
		return ErrWorkers
	}
	return fmt.Errorf("looking for workers: %w", err)
}

func (s *stage) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverPatience)
	defer cancel()
	return s.nc.FlushWithContext(ctx)
}

// meet waits until somebody takes tasks.
func (s *stage) meet(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no client takes tasks on %s within %s", s.control, patience))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.give(ctx, Task{Name: "hello", Do: "nothing"})
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// give hands the client one task and returns its report.
func (s *stage) give(ctx context.Context, t Task) (Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, taskTime+reportGrace, fmt.Errorf("no report within %s", taskTime+reportGrace))
	defer cancel()
	task, err := json.Marshal(t)
	if err != nil {
		return Report{}, err
	}
	msg, err := s.nc.RequestWithContext(ctx, s.control, task)
	if err != nil {
		return Report{}, cmp.Or(context.Cause(ctx), err)
	}
	return unmarshal[Report](msg.Data)
}

// perform plays one script and judges the client's part.
func (s *stage) perform(ctx context.Context, one script) error {
	feature := "conformance-" + fmt.Sprintf("%.8x", rand.Text())
	p := &player{stage: s, script: one, feature: feature}
	if err := p.begin(ctx); err != nil {
		return err
	}
	report, err := s.give(ctx, Task{Name: one.Name, Do: one.Do, Feature: feature, Prompt: "hello",
		TimeoutMS: taskTime.Milliseconds(), SilenceMS: taskSilence.Milliseconds(), CancelAfter: one.CancelAfter})
	err = errors.Join(err, p.end())
	switch {
	case err != nil:
		return err
	case report.Outcome == OutcomeUnsupported:
		return leftOut("the client has no " + string(one.Do))
	case !slices.ContainsFunc(one.Expect, report.fits):
		return fmt.Errorf("the client reported %s", report.summary())
	}
	return nil
}

// summary is a report without its text.
func (r Report) summary() string {
	text := fmt.Sprintf("outcome %q", string(r.Outcome))
	if r.Code != "" {
		text += fmt.Sprintf(", code %q", string(r.Code))
	}
	if r.Text != nil {
		text += fmt.Sprintf(", a text of %d bytes", len(*r.Text))
	}
	return text + fmt.Sprintf(", retry_after_ms %d", r.RetryAfterMS)
}
