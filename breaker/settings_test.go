package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettingsValidate(t *testing.T) {
	require.NoError(t, Settings{}.Validate())
	require.NoError(t, Settings{Threshold: 1000, Window: time.Hour, CoolDown: 24 * time.Hour, ProbeTimeout: 100 * time.Millisecond, Ramp: time.Hour}.Validate())
	for name, s := range map[string]Settings{
		"threshold":     {Threshold: -1},
		"window":        {Window: 999 * time.Millisecond},
		"cool_down":     {CoolDown: time.Millisecond},
		"max_cool_down": {CoolDown: time.Minute, MaxCoolDown: time.Second},
		"probe_timeout": {ProbeTimeout: 11 * time.Minute},
		"ramp":          {Ramp: -1},
	} {
		require.ErrorContains(t, s.Validate(), name+": must be")
	}
}

func TestLeaseOutlastsTheProbe(t *testing.T) {
	for _, probe := range []time.Duration{100 * time.Millisecond, time.Second, 1500 * time.Millisecond, 30 * time.Second, 10 * time.Minute} {
		lease := Settings{ProbeTimeout: probe}.lease()
		require.GreaterOrEqual(t, lease, probe+900*time.Millisecond)
		require.Less(t, lease, probe+2*time.Second)
		require.Zero(t, lease%time.Second)
	}
}
