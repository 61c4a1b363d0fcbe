package kv

import (
	"cmp"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/subjects"
)

// Names of the buckets.
const (
	BreakersBucket = "llm_breakers"
	ProbesBucket   = "llm_probes"
	FlagsBucket    = "llm_flags"
	FeaturesBucket = "llm_features"
	CacheBucket    = "llm_cache"
	RequestsBucket = "llm_requests"
	JobsBucket     = "llm_jobs"
	UsageBucket    = "llm_usage"
	SlotsBucket    = "llm_slots"
)

// Options of the buckets. The zero value suits production.
type Options struct {
	Replicas   int                   // at most so many of each bucket; 0 means 3, and fewer where there are fewer servers
	Storage    jetstream.StorageType // file by default
	CacheTTL   time.Duration         // of a cached answer; 0 means 24 h
	RequestTTL time.Duration         // of an idempotency record; 0 means 24 h
	UsageTTL   time.Duration         // of a day's totals; 0 means 400 days
}

// Validate refuses what no bucket can have.
func (o Options) Validate() error {
	switch {
	case o.Replicas < 0 || o.Replicas > 5:
		return errors.New("kv options: Replicas must be 0 to 5")
	case o.CacheTTL < 0 || o.RequestTTL < 0 || o.UsageTTL < 0:
		return errors.New("kv options: a TTL must not be negative")
	case o.CacheTTL > 0 && o.CacheTTL < time.Second || o.RequestTTL > 0 && o.RequestTTL < time.Second || o.UsageTTL > 0 && o.UsageTTL < time.Second:
		return errors.New("kv options: a TTL must be at least 1s")
	}
	return nil
}

func (o Options) replicas() int {
	if o.Replicas == 0 {
		return 3
	}
	return o.Replicas
}

// markerTTL is how long the server's word that a lease ran out stays readable.
const markerTTL = time.Minute

// jobsTTL is longer than a job lives after its history was last written.
const jobsTTL = 8 * 24 * time.Hour

// spec is one bucket as it must be.
type spec struct {
	jetstream.KeyValueConfig
	changes string // prefix of the subjects that changes are republished to
	into    **Bucket
}

// specs is the table of buckets.
func (o Options) specs(b *Buckets) []spec {
	day := 24 * time.Hour
	table := []spec{
		{into: &b.Breakers, changes: subjects.BreakerPrefix, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: BreakersBucket, Description: "State of circuit breakers"}},
		{into: &b.Probes, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: ProbesBucket, Description: "Leases to probe a provider", LimitMarkerTTL: markerTTL}},
		{into: &b.Flags, changes: subjects.FlagPrefix, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: FlagsBucket, Description: "Kill switches and failover switches", History: 10}},
		{into: &b.Features, changes: subjects.FeaturePrefix, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: FeaturesBucket, Description: "Policies of features", History: 10}},
		{into: &b.Cache, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: CacheBucket, Description: "Previous answers, for fallback", TTL: cmp.Or(o.CacheTTL, day)}},
		{into: &b.Requests, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: RequestsBucket, Description: "Running and finished requests", TTL: cmp.Or(o.RequestTTL, day)}},
		{into: &b.Jobs, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: JobsBucket, Description: "What has become of jobs that were tried and are not done", TTL: jobsTTL}},
		{into: &b.Usage, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: UsageBucket, Description: "Requests, tokens and cost of each day", TTL: cmp.Or(o.UsageTTL, 400*day)}},
		{into: &b.Slots, changes: subjects.SlotPrefix, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: SlotsBucket, Description: "Which worker holds how many of a tenant's requests at once"}},
	}
	for i := range table {
		s := &table[i]
		s.Storage, s.History = o.Storage, max(1, s.History)
		if s.changes != "" {
			s.RePublish = &jetstream.RePublish{Source: "$KV." + s.Bucket + ".>", Destination: s.changes + ">"}
		}
	}
	return table
}

// refuse names what an existing bucket has and cannot lose.
func (s spec) refuse(have jetstream.StreamConfig) error {
	switch {
	case s.Storage == jetstream.FileStorage && have.Storage != jetstream.FileStorage:
		return s.mismatch("storage", have.Storage.String(), s.Storage.String())
	case have.Mirror != nil:
		return s.mismatch("mirror", have.Mirror.Name, "none, since workers write it")
	case have.Sealed:
		return s.mismatch("sealed", "true", "false")
	}
	return nil
}

func (s spec) mismatch(setting, have, want string) error {
	return &BucketError{Bucket: s.Bucket, Setting: setting, Have: have, Want: want,
		Remedy: "keep what you need of it, delete it with \"nats kv del " + s.Bucket + "\" and start a worker again"}
}

// amend sets what llmbus needs and names what it changed. Everything else, such
// as placement and size limits, stays as an operator set it.
func (s spec) amend(cfg *jetstream.StreamConfig) (changed []string) {
	set := func(setting string, same bool, apply func()) {
		if !same {
			apply()
			changed = append(changed, setting)
		}
	}
	set("history", cfg.MaxMsgsPerSubject == int64(s.History), func() { cfg.MaxMsgsPerSubject = int64(s.History) })
	set("ttl", cfg.MaxAge == s.TTL, func() {
		cfg.MaxAge, cfg.Duplicates = s.TTL, 2*time.Minute
		if s.TTL > 0 {
			cfg.Duplicates = min(s.TTL, cfg.Duplicates)
		}
	})
	set("direct get", cfg.AllowDirect, func() { cfg.AllowDirect = true })
	set("limit marker ttl", s.LimitMarkerTTL == 0 || cfg.AllowMsgTTL && cfg.SubjectDeleteMarkerTTL == s.LimitMarkerTTL, func() {
		cfg.AllowMsgTTL, cfg.SubjectDeleteMarkerTTL = true, s.LimitMarkerTTL
	})
	set("republish", s.RePublish == nil || cfg.RePublish != nil && *cfg.RePublish == *s.RePublish, func() { cfg.RePublish = s.RePublish })
	return changed
}
