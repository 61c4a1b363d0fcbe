package config

import (
	"slices"
	"time"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/subjects"
)

const (
	leastTimeout = 10 * time.Millisecond
	mostTimeout  = time.Hour
	mostTargets  = 32
)

// defaultsOf are what a class makes of a feature that says no more.
func defaultsOf(class llm.Class) (chain.Feature, provider.Timeouts) {
	f := chain.Feature{
		Class: class, Timeout: 30 * time.Second,
		OnRateLimit: chain.RateLimitFailOver, OnQuota: chain.FailOver, OnMisconfigured: chain.Fail, OnRefusal: chain.Fail,
		OnInvalidOutput: chain.FailOver, OnInterrupt: chain.InterruptError, Repair: chain.RepairFence,
	}
	limits := provider.Timeouts{FirstToken: 10 * time.Second, Idle: 15 * time.Second}
	switch class {
	case llm.ClassStructured:
		f.Timeout = time.Minute
		limits = provider.Timeouts{FirstToken: 20 * time.Second, Idle: 20 * time.Second}
	case llm.ClassBackground:
		f.Timeout, f.OnRateLimit = 5*time.Minute, chain.RateLimitWait
		limits = provider.Timeouts{FirstToken: time.Minute, Idle: time.Minute}
	}
	return f, limits
}

// feature reads one entry of features.
func (b *builder) feature(s *section) chain.Feature {
	if !subjects.ValidFeature(s.name) {
		s.problem("", "the name of a feature must be %s", subjects.FeatureRule)
	}
	class := llm.ClassInteractive
	choice(s, "class", &class, llm.ClassInteractive, llm.ClassBackground, llm.ClassStructured)
	f, limits := defaultsOf(class)
	f.Name = s.name
	b.readClasses(s, &f)
	s.duration("timeout", &f.Timeout, leastTimeout, mostTimeout, false)
	readPolicies(s, &f)
	readJobs(s, &f)
	complete := b.targets(s, &f, limits)
	readCommit(s, &f)
	readFallback(s, &f)
	s.texts("regions", &f.Regions)
	b.featureLimits(s)
	s.end()
	if complete { // else the answers below would mislead
		judgeFeature(s, &f)
	}
	return f
}

func readPolicies(s *section, f *chain.Feature) {
	choice(s, "on_rate_limit", &f.OnRateLimit, chain.RateLimitFailOver, chain.RateLimitWait, chain.RateLimitFail)
	choice(s, "on_quota", &f.OnQuota, chain.FailOver, chain.Fail)
	choice(s, "on_misconfigured", &f.OnMisconfigured, chain.Fail, chain.FailOver)
	choice(s, "on_refusal", &f.OnRefusal, chain.Fail, chain.FailOver)
	choice(s, "on_invalid_output", &f.OnInvalidOutput, chain.FailOver, chain.Fail)
	choice(s, "on_interrupt", &f.OnInterrupt, chain.InterruptError, chain.InterruptRestart, chain.InterruptQueue)
	choice(s, "repair", &f.Repair, chain.RepairFence, chain.RepairNone)
}

func readCommit(s *section, f *chain.Feature) {
	sub := s.sub("commit_after")
	if sub == nil {
		return
	}
	var ms int
	characters := sub.whole("characters", &f.Commit.Characters, 1, 1e6)
	age := sub.whole("ms", &ms, 1, 60_000)
	f.Commit.After = time.Duration(ms) * time.Millisecond
	if !characters && !age && len(sub.order) == 0 {
		sub.problem("", "needs characters, ms or both")
	}
	sub.end()
}

// jobTimeout is what one try of a job may take where the feature's own timeout
// is not longer: that of the class background.
const jobTimeout = 5 * time.Minute

// readJobs reads what differs for background jobs of the feature.
func readJobs(s *section, f *chain.Feature) {
	f.Jobs = chain.Jobs{Timeout: max(f.Timeout, jobTimeout), Backoff: jobs.DefaultBackoff()}
	sub := s.sub("jobs")
	if sub == nil {
		return
	}
	sub.duration("timeout", &f.Jobs.Timeout, leastTimeout, mostTimeout, false)
	sub.durations("backoff", &f.Jobs.Backoff, leastTimeout, mostTimeout)
	sub.end()
}

// queueWord is what the configuration calls llm.FallbackQueued.
const queueWord = "queue"

// readFallback reads the list of substitutes, or one word: a substitute or none.
func readFallback(s *section, f *chain.Feature) {
	text := s.text("static_text", &f.StaticText)
	var modes []string
	if e := s.entries["fallback"]; e != nil {
		word, ok := scalar(e.Value)
		switch {
		case !ok || word == "":
			s.texts("fallback", &modes)
		case word != string(llm.FallbackNone):
			modes = []string{word}
			fallthrough
		default:
			s.known = append(s.known, "fallback")
		}
	} else {
		s.known = append(s.known, "fallback")
	}
	for i, mode := range modes {
		switch m := llm.FallbackMode(mode); {
		case mode == queueWord:
			f.Fallback = append(f.Fallback, llm.FallbackQueued)
		case m != llm.FallbackCached && m != llm.FallbackStatic:
			s.problem("fallback", "must be none, or a list of cached, queue and static")
		case m == llm.FallbackStatic && i < len(modes)-1:
			s.problem("fallback", "static must come last, since it always answers")
		default:
			f.Fallback = append(f.Fallback, m)
		}
	}
	static := slices.Contains(f.Fallback, llm.FallbackStatic)
	switch {
	case text && !static:
		s.problem("static_text", "is never used; add static to fallback, or remove it")
	case static && !s.has("static_text"):
		s.problem("fallback", "static needs static_text")
	}
}
