package conformance_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/conformance"
)

func TestOurWorkerConforms(t *testing.T) {
	all := results{}
	require.NoError(t, conformance.Worker(t.Context(), conformance.WorkerConfig{Conn: startWorker(t), Feature: "quick", Slow: "slow"}, all.tell))
	all.requirePassed(t)
	require.Greater(t, len(all), 50)
}

func TestChecksThatNeedASlowFeatureAreLeftOut(t *testing.T) {
	some := results{}
	err := conformance.Worker(t.Context(), conformance.WorkerConfig{Conn: startWorker(t), Feature: "quick", Match: regexp.MustCompile("cancelled|slow")}, some.tell)
	require.NoError(t, err)
	require.Len(t, some, 3)
	some.requirePassed(t, "it needs a slow feature")
}
