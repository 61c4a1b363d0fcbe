package config

import (
	"github.com/llmbus/llmbus/chain"
)

// judgeFeature refuses what the targets as a whole make impossible.
func judgeFeature(s *section, f *chain.Feature) {
	judgePolicies(s, f)
	streaming := count(f, func(t *chain.Target) bool { return t.Can.Streaming })
	if s.has("on_interrupt") && f.OnInterrupt == chain.InterruptRestart && streaming < 2 {
		s.problem("on_interrupt", "restart needs a second target that can stream")
	}
	if s.has("on_interrupt") && f.OnInterrupt == chain.InterruptQueue && streaming == 0 {
		s.problem("on_interrupt", "queue is for streams, and no target can stream; remove it")
	}
	if s.has("commit_after") {
		switch retries := count(f, func(t *chain.Target) bool { return t.Attempts > 1 }); {
		case streaming == 0:
			s.problem("commit_after", "is for streams, and no target can stream; remove it")
		case len(f.Targets) == 1 && retries == 0:
			s.problem("commit_after", "holds text back so that another call can take over, and there is none; add a target or attempts")
		}
	}
	if s.has("repair") && f.Repair == chain.RepairFence && count(f, func(t *chain.Target) bool { return t.Can.JSONSchema }) == 0 {
		s.problem("repair", "is for json_schema, which no target is declared to take; remove it")
	}
	judgeGovernance(s, f)
}

// judgePolicies refuses policies that need what is not there.
func judgePolicies(s *section, f *chain.Feature) {
	if len(f.Targets) == 1 {
		for key, value := range map[string]string{
			"on_rate_limit": string(f.OnRateLimit), "on_quota": string(f.OnQuota), "on_misconfigured": string(f.OnMisconfigured),
			"on_refusal": string(f.OnRefusal), "on_invalid_output": string(f.OnInvalidOutput),
		} {
			if s.has(key) && value == string(chain.FailOver) {
				s.problem(key, "fail_over needs a second target")
			}
		}
	}
	if s.has("on_rate_limit") && f.OnRateLimit == chain.RateLimitWait && count(f, func(t *chain.Target) bool { return t.Attempts > 1 }) == 0 {
		s.problem("on_rate_limit", "wait needs a target with attempts of 2 or more")
	}
}

func count(f *chain.Feature, is func(*chain.Target) bool) int {
	n := 0
	for i := range f.Targets {
		if is(&f.Targets[i]) {
			n++
		}
	}
	return n
}
