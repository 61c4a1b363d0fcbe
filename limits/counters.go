package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/subjects"
)

// incrHeader carries how much a counter is to be raised.
const incrHeader = "Nats-Incr"

// counters are the streams of counters, one for each length of window, so that
// old windows vanish soon. A stream is made when it is first needed.
type counters struct {
	js      jetstream.JetStream
	options kv.Options

	mu   sync.Mutex
	open map[Window]bool
}

func newCounters(js jetstream.JetStream, o kv.Options) *counters {
	return &counters{js: js, options: o, open: map[Window]bool{}}
}

// trade raises the counter by all that is wanted and takes back at once what
// was too much. So the sum of all grants never passes the limit: a grant is no
// more than was free before it, even if some of what the others have is about to
// come back.
func (c *counters) trade(ctx context.Context, p *pool, o order) (receipt, error) {
	if err := c.ready(ctx, p.Window); err != nil {
		return receipt{}, err
	}
	subject := subjects.LimitCounter(p.key, o.window)
	r, err := c.add(ctx, subject, o.want+o.owed)
	if err != nil || o.want <= 0 {
		return r, err
	}
	r.granted = o.want
	if over := r.total - o.limit; over > 0 {
		back := min(over, o.want)
		granted := o.want - back
		if r, err = c.add(ctx, subject, -back); err != nil { // it counts as used until the window is over
			return receipt{}, err
		}
		r.granted = granted
	}
	return r, nil
}

// counted is the server's answer.
type counted struct {
	Error *jetstream.APIError `json:"error"`
	Seq   uint64              `json:"seq"`
	Value string              `json:"val"`
}

// add raises a counter by n and returns what it is then.
func (c *counters) add(ctx context.Context, subject string, n int64) (receipt, error) {
	msg := &nats.Msg{Subject: subject, Header: nats.Header{incrHeader: {strconv.FormatInt(n, 10)}}}
	reply, err := c.js.Conn().RequestMsgWithContext(ctx, msg)
	if err != nil {
		return receipt{}, fmt.Errorf("count: %w", err)
	}
	return parseCount(reply.Data)
}

func parseCount(data []byte) (receipt, error) {
	var a counted
	if err := json.Unmarshal(data, &a); err != nil {
		return receipt{}, fmt.Errorf("count: %w", err)
	}
	if a.Error != nil {
		return receipt{}, fmt.Errorf("count: %w", a.Error)
	}
	total, err := strconv.ParseInt(a.Value, 10, 64)
	if err != nil {
		return receipt{}, fmt.Errorf("count: %w", errNotCounter)
	}
	return receipt{total: total, seq: a.Seq}, nil
}

// ready makes the stream of a window if that has not been done.
func (c *counters) ready(ctx context.Context, w Window) error {
	c.mu.Lock()
	open := c.open[w]
	c.mu.Unlock()
	if open {
		return nil
	}
	name := string(w)
	s, err := kv.OpenStream(ctx, c.js, c.options, jetstream.StreamConfig{
		Name: subjects.LimitStream(name), Description: "What tenants were allowed in windows of a " + name,
		Subjects: []string{subjects.LimitCounters(name)}, AllowMsgCounter: true, AllowDirect: true,
		MaxMsgsPerSubject: 1, MaxAge: w.Length() + w.Length()/2 + time.Minute,
		RePublish: &jetstream.RePublish{Source: subjects.LimitCounters(name), Destination: subjects.LimitPushes(name)},
	}, func(*jetstream.StreamConfig) bool { return false })
	if err != nil {
		return err
	}
	if !s.CachedInfo().Config.AllowMsgCounter {
		return fmt.Errorf("%s: %w", subjects.LimitStream(name), errNotCounter)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[w] = true
	return nil
}

// probe reports whether the streams that are in use can be written. They are
// looked for anew, since somebody may have deleted one.
func (c *counters) probe(ctx context.Context) error {
	c.mu.Lock()
	used := slices.Collect(maps.Keys(c.open))
	clear(c.open)
	c.mu.Unlock()
	for _, w := range used {
		if err := c.ready(ctx, w); err != nil {
			return err
		}
		if _, err := c.add(ctx, subjects.LimitCounter(subjects.LimitKey(string(w), "", "", "probe"), 0), 0); err != nil {
			return err
		}
	}
	return nil
}

// sequenceOf is the sequence of a message that a stream republished.
func sequenceOf(msg *nats.Msg) (uint64, error) {
	values := msg.Header[jetstream.SequenceHeader]
	if len(values) == 0 {
		return 0, errors.New("not a republished message")
	}
	return strconv.ParseUint(values[len(values)-1], 10, 64)
}
