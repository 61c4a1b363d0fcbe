package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/internal/fleet"
)

func TestSpan(t *testing.T) {
	for ms, want := range map[int64]string{0: "0s", 59_400: "59s", 59_600: "1m00s", 140_000: "2m20s", 3_600_000: "1h00m", 90_000_000: "25h00m"} {
		require.Equal(t, want, span(ms))
	}
}

func TestSparkline(t *testing.T) {
	require.Empty(t, sparkline(nil))
	require.Equal(t, "▁▂█▅", sparkline([]fleet.Second{{}, {Ended: 1}, {Ended: 100}, {Ended: 50}}))
	require.Equal(t, 60, len([]rune(sparkline(make([]fleet.Second, 119)))))
}

// troubled is a fleet in which everything is the matter.
func troubled() *fleet.View {
	return &fleet.View{
		At: time.Unix(0, 0), Stale: []fleet.Part{fleet.PartNATS, fleet.PartWorkers},
		Features: []fleet.Feature{{Name: "f\x1b[2J", Targets: []fleet.Target{{Provider: "p", Model: "m", State: breaker.HalfOpen}, {Provider: "q", Model: "n", State: breaker.Closed, Off: true}}}},
		Breakers: []fleet.Breaker{{Key: "p.m", State: breaker.Open, Why: "timeout", RetryMS: 4200, Workers: 1, Of: 2}, {Key: "q", State: breaker.HalfOpen, Workers: 2, Of: 2}},
		Switches: []fleet.Switch{{Key: "all", Now: true, Reason: "\x1b]0;owned\a"}},
		Workers:  []fleet.Worker{{Name: "w1", State: fleet.Silent, HeardMS: 9000}, {Name: "w2", State: "joined", Degraded: true}, {Name: "w3", State: "joined", Refused: []string{"x"}}},
		Traffic:  fleet.Traffic{Missed: 7}, Jobs: fleet.Jobs{Waiting: new(uint64(3)), OldestMS: new(int64(61_000)), Dead: new(uint64(2))},
		Events: []fleet.Event{{Name: "request_failed", Code: "deadline", Times: 20, Reason: "\x1b[1m"}},
	}
}

func TestTroubleIsSaid(t *testing.T) {
	text := strings.Join(draw(terminal{}, troubled(), 0), "\n")
	for _, want := range []string{
		"! NATS is out of reach: all below is old", "! 7 events came too fast and are not counted", "jobs 3 waiting, the oldest 1m01s  2 dead",
		"p/m half_open", "→ q/n off", "in 4.2s", "at the next request", "1/2", "off now", "silent 9s", "joined, degraded", "joined, configuration refused", ", 20 times",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "! no worker answers", "what follows from the first is not said")
	require.NotContains(t, text, "\x1b", "others do not steer the terminal")
}

func TestLinesFitTheTerminal(t *testing.T) {
	for _, where := range []terminal{{}, {color: true}} {
		for _, line := range draw(where, troubled(), 40) {
			for _, code := range []style{bold, faint, red, green, amber} {
				line = strings.ReplaceAll(line, "\x1b["+string(code)+"m", "")
			}
			line = strings.ReplaceAll(line, "\x1b[0m", "")
			require.LessOrEqual(t, len([]rune(line)), 40, line)
			require.NotContains(t, line, "\x1b")
		}
	}
}
