package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagKey(t *testing.T) {
	for text, want := range map[string]string{
		"all": "all", "failover": "failover", "feature.support": "feature.support", "provider.openai": "provider.openai",
		"model.openai.gpt-4.1": "model.openai.gpt-4=2E1", "model.openai.gpt-4=2E1": "model.openai.gpt-4=2E1",
		"tenant.a.b": "tenant.a=2Eb", "feature.support.tenant.a.b": "feature.support.tenant.a=2Eb",
		"failover.support.tenant.acme": "failover.support.tenant.acme",
	} {
		require.Equal(t, want, flagKey(text), text)
	}
}
