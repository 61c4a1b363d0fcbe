package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/audit"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// site is a server and what one worker logs, in fake time.
type site struct {
	*testing.T
	nc  *nats.Conn
	js  jetstream.JetStream
	log *bytes.Buffer
}

func bubble(t *testing.T, f func(*site)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T) {
		nc := natstest.Connect(t, natstest.Server(t))
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		f(&site{t, nc, js, &bytes.Buffer{}})
	})
}

// worker runs a Log until stop.
func (s *site) worker(tune func(*audit.Config)) (l *audit.Log, stop func()) {
	s.Helper()
	c := audit.Config{Conn: s.nc, Worker: "w1", Buckets: kv.Options{Storage: jetstream.MemoryStorage}, Log: slog.New(slog.NewTextHandler(s.log, nil))}
	if tune != nil {
		tune(&c)
	}
	l, err := audit.New(c)
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	var running sync.WaitGroup
	running.Go(func() { require.NoError(s, l.Run(ctx)) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	s.Cleanup(stop)
	return l, stop
}

func (s *site) records(q audit.Query) []audit.Record {
	s.Helper()
	var list []audit.Record
	for r, err := range audit.Read(s.Context(), s.js, q) {
		require.NoError(s, err)
		list = append(list, r)
	}
	return list
}

func decision(feature string, n int) chain.Decision {
	return chain.Decision{RequestID: fmt.Sprint("r", n), Feature: feature, Class: llm.ClassInteractive}
}

func TestConfigIsRefused(t *testing.T) {
	for want, c := range map[string]audit.Config{
		"audit config: Conn is required":                         {},
		"audit config: Worker is required":                       {Conn: &nats.Conn{}},
		"audit config: MaxAge and MaxBytes must not be negative": {Conn: &nats.Conn{}, Worker: "w", MaxAge: -1},
		"kv options: Replicas must be 0 to 5":                    {Conn: &nats.Conn{}, Worker: "w", Buckets: kv.Options{Replicas: 9}},
	} {
		_, err := audit.New(c)
		require.EqualError(t, err, want)
	}
}

func TestNothingIsMadeBeforeTheFirstRecord(t *testing.T) {
	bubble(t, func(s *site) {
		s.worker(nil)
		natstest.Advance(time.Minute)
		_, err := s.js.Stream(s.Context(), subjects.AuditStream)
		require.ErrorIs(s, err, jetstream.ErrStreamNotFound)
		for _, err := range audit.Read(s.Context(), s.js, audit.Query{}) {
			require.ErrorIs(s, err, audit.ErrNothing)
		}
	})
}

func TestEveryDecisionIsKept(t *testing.T) {
	bubble(t, func(s *site) {
		l, stop := s.worker(func(c *audit.Config) { c.MaxAge, c.MaxBytes = time.Hour, 1<<20 })
		for i := range 1000 {
			l.Audit(decision([]string{"a", "b"}[i%2], i))
		}
		stop()
		all := s.records(audit.Query{})
		require.Len(s, all, 1000)
		for i, r := range all {
			require.Equal(s, fmt.Sprint("r", i), r.RequestID, "in order")
			require.Equal(s, "w1", r.Worker)
		}
		require.Len(s, s.records(audit.Query{Feature: "b"}), 500)
		require.Zero(s, l.Lost())
		require.Empty(s, s.log.String())

		stream, err := s.js.Stream(s.Context(), subjects.AuditStream)
		require.NoError(s, err)
		require.Equal(s, time.Hour, stream.CachedInfo().Config.MaxAge)
		require.Equal(s, int64(1<<20), stream.CachedInfo().Config.MaxBytes)
		require.Error(s, stream.DeleteMsg(s.Context(), 1), "a record is not taken away")
		require.Error(s, stream.Purge(s.Context()))
	})
}

func TestRecordsOfSomeTime(t *testing.T) {
	bubble(t, func(s *site) {
		l, _ := s.worker(nil)
		l.Audit(decision("a", 1))
		natstest.Advance(time.Hour)
		l.Audit(decision("a", 2))
		natstest.Advance(time.Second)
		got := s.records(audit.Query{Since: time.Now().Add(-time.Minute)})
		require.Len(s, got, 1)
		require.Equal(s, "r2", got[0].RequestID)
		require.Empty(s, s.records(audit.Query{Since: time.Now().Add(time.Minute)}))
	})
}

func TestRetentionMayChange(t *testing.T) {
	bubble(t, func(s *site) {
		for _, age := range []time.Duration{time.Hour, 2 * time.Hour} {
			l, stop := s.worker(func(c *audit.Config) { c.MaxAge = age })
			l.Audit(decision("a", 1))
			stop()
			stream, err := s.js.Stream(s.Context(), subjects.AuditStream)
			require.NoError(s, err)
			require.Equal(s, age, stream.CachedInfo().Config.MaxAge)
		}
	})
}

func TestRecordsWaitForTheStream(t *testing.T) {
	bubble(t, func(s *site) {
		l, _ := s.worker(nil)
		l.Audit(decision("a", 1))
		natstest.Advance(time.Second)
		// Another stream takes the subject, so that this one cannot be made again.
		require.NoError(s, s.js.DeleteStream(s.Context(), subjects.AuditStream))
		_, err := s.js.CreateStream(s.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"llm.audit.x", "llm.audit.y.>"}, Storage: jetstream.MemoryStorage})
		require.NoError(s, err)
		for i := range 300 {
			l.Audit(decision("a", 2+i))
		}
		natstest.Advance(time.Minute)
		require.Contains(s, s.log.String(), "audit records cannot be stored; they wait")
		require.Zero(s, l.Lost(), "they wait")
		require.NoError(s, s.js.DeleteStream(s.Context(), "OTHER"))
		natstest.Advance(30 * time.Second)
		require.Contains(s, s.log.String(), "audit records are stored again")
		got := s.records(audit.Query{})
		require.Len(s, got, 300)
		require.Equal(s, "r2", got[0].RequestID)
	})
}

func TestLossIsCountedAndNeverWaitedFor(t *testing.T) {
	bubble(t, func(s *site) {
		l, stop := s.worker(nil)
		_, err := s.js.CreateStream(s.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"llm.audit.x"}, Storage: jetstream.MemoryStorage})
		require.NoError(s, err)
		l.Audit(decision("a", 0))
		natstest.Advance(time.Second) // it is tried in vain, with nothing beside it
		began := time.Now()
		for i := range 5000 {
			l.Audit(decision("a", i))
		}
		require.Zero(s, time.Since(began), "no request waits")
		lost := l.Lost()
		require.Greater(s, lost, uint64(700))
		natstest.Advance(30 * time.Second)
		require.Contains(s, s.log.String(), fmt.Sprintf(`level=ERROR msg="audit records are lost" records=%d`, lost))
		stop()
		require.Equal(s, uint64(5001), l.Lost(), "at the end of the worker the rest is lost too")
		require.Contains(s, s.log.String(), fmt.Sprintf("records=%d", 5001-lost))
	})
}

// A record as it is stored; docs/operations.md shows it.
func TestGoldenRecord(t *testing.T) {
	r := audit.Record{ID: "BGYFVAUI6M3KYQEO7WTD4U", Time: time.Date(2026, 11, 30, 8, 23, 40, 820_000_000, time.UTC), Worker: "w1-EVEJ", Decision: chain.Decision{
		RequestID: "4MPJG2BGYFVAUI6M3KYQEO7WTD", Feature: "support", Tenant: "822b33ad87c1", Class: llm.ClassInteractive, DataClass: "internal", Stream: true,
		Targets: []chain.Candidate{
			{Provider: "openai", Model: "gpt-5-mini", Skip: chain.SkipNotApproved, Detail: "internal"},
			{Provider: "anthropic", Model: "claude-haiku-4-5", Skip: chain.SkipCircuitOpen, Detail: "unavailable"},
			{Provider: "inhouse", Model: "llama3.2", Calls: 1, Outcome: llm.OutcomeOK, Turn: 1},
			{Provider: "backup", Model: "llama3.2", Skip: chain.SkipNotReached},
		},
		Provider: "inhouse", Model: "llama3.2", ServedBy: llm.ServedByModel, CostUSD: 0.00012, MS: 812,
	}}
	want, err := os.ReadFile("testdata/record.json")
	require.NoError(t, err)
	got, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
	doc, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), string(want), "docs/operations.md quotes the record")
	var back audit.Record
	require.NoError(t, json.Unmarshal(want, &back))
	require.Equal(t, r, back)
}

// BenchmarkAudit is what a request waits for its record.
func BenchmarkAudit(b *testing.B) {
	l, err := audit.New(audit.Config{Conn: &nats.Conn{}, Worker: "w"})
	require.NoError(b, err)
	d := decision("a", 1)
	b.ReportAllocs()
	for b.Loop() {
		l.Audit(d)
	}
}
