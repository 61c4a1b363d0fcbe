package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// keysPerRead bounds one request for values; the server's own limit is 1024.
const keysPerRead = 256

// read takes a snapshot. The list of keys comes from the stream's leader, the
// values from whichever replica is near, which must have caught up with the
// leader's list. No consumer is made, so nothing has to be restored after a
// restart of the server before a read succeeds.
func (b *Bucket) read(ctx context.Context) (snapshot, error) {
	s := snapshot{started: time.Now()}
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.subject(">")))
	if err != nil {
		return s, fmt.Errorf("list keys of %s: %w", b.name, err)
	}
	if err := authoritative(info); err != nil {
		return s, fmt.Errorf("list keys of %s: %w", b.name, err)
	}
	s.created, s.last, s.pushed = info.Created, info.State.LastSeq, info.Config.RePublish != nil
	now := time.Now()
	for subjects := range slices.Chunk(slices.Collect(maps.Keys(info.State.Subjects)), keysPerRead) {
		upTo, err := b.values(ctx, subjects, func(u update) {
			u.Received = now
			if !u.Created.IsZero() {
				u.age = max(0, info.TimeStamp.Sub(u.Created))
			}
			s.updates = append(s.updates, u)
		})
		if err == nil && upTo < s.last {
			err = errBehind
		}
		if err != nil {
			return s, fmt.Errorf("read values of %s: %w", b.name, err)
		}
	}
	return s, nil
}

// unheard is how long a replica may be silent before its leader may have lost
// it: replicas answer a heartbeat each second.
const unheard = 3 * time.Second

// authoritative tells the word of a bucket's leader from others. A follower
// answers while there is no leader, and a leader that is cut off from the
// majority takes itself for one for ten seconds or more, while another may
// have been elected. A new leader was just voted for and may be yet to be
// answered.
func authoritative(info *jetstream.StreamInfo) error {
	c := info.Cluster
	switch {
	case c == nil: // a server alone
		return nil
	case c.Leader == "":
		return errLeaderless
	case c.LeaderSince != nil && info.TimeStamp.Sub(*c.LeaderSince) < unheard:
		return nil
	}
	heard := 1 // the leader itself, which is not in the list
	for _, r := range c.Replicas {
		never := r.Active == 0 && !r.Current
		if !never && !r.Offline && r.Active < unheard {
			heard++
		}
	}
	if all := len(c.Replicas) + 1; heard <= all/2 {
		return errMinority
	}
	return nil
}

// values reads the last message of each subject and returns the revision up to
// which the answering replica knew the stream.
func (b *Bucket) values(ctx context.Context, subjects []string, use func(update)) (upTo uint64, err error) {
	request, err := json.Marshal(map[string][]string{"multi_last": subjects})
	if err != nil {
		return 0, err
	}
	inbox := b.conn.NewInbox()
	sub, err := b.conn.SubscribeSync(inbox)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := b.conn.PublishRequest(b.api+"DIRECT.GET."+streamName(b.name), inbox, request); err != nil {
		return 0, err
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, err
		}
		if u, ok := parse(msg); ok {
			if u.Key, ok = strings.CutPrefix(last(msg.Header, jetstream.SubjectHeader), b.subject("")); ok {
				use(u)
			}
			continue
		}
		if status := msg.Header.Get("Status"); status != "204" {
			return 0, fmt.Errorf("server answered %s %s", status, msg.Header.Get("Description"))
		}
		if pending := msg.Header.Get("Nats-Num-Pending"); pending != "0" {
			return 0, fmt.Errorf("%s values did not fit one answer", pending)
		}
		return strconv.ParseUint(msg.Header.Get("Nats-UpTo-Sequence"), 10, 64)
	}
}

// parse reads the headers that the server puts on a stored message. ok is false
// for any other message. The key is left to the caller.
func parse(msg *nats.Msg) (u update, ok bool) {
	revision, err := strconv.ParseUint(last(msg.Header, jetstream.SequenceHeader), 10, 64)
	if err != nil || revision == 0 {
		return update{}, false
	}
	u = update{op: OpPut, Entry: Entry{Value: msg.Data, Revision: revision}}
	u.Created, _ = time.Parse(time.RFC3339Nano, last(msg.Header, jetstream.TimeStampHeaer))
	switch reason := last(msg.Header, jetstream.MarkerReasonHeader); {
	case reason == "MaxAge":
		u.op = OpExpire
	case reason != "":
		u.op = OpDelete
	}
	switch msg.Header.Get("KV-Operation") {
	case "DEL", "PURGE":
		u.op = OpDelete
	}
	if u.op != OpPut {
		u.Value = nil
	}
	return u, true
}

// last is the value that the server appended: a publisher may have set a header
// of the same name before.
func last(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func (b *Bucket) subject(key string) string { return "$KV." + b.name + "." + key }

func streamName(bucket string) string { return "KV_" + bucket }
