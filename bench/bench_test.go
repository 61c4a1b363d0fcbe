package main

import (
	"context"
	"encoding/xml"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The children of a comparison are this program, and so in a test the test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}

// The broker's side is measured by every run of the command; here there is no
// time to build it.
func TestTheFloorAnswersWholeAndStreamed(t *testing.T) {
	l, err := startLab(t.Context(), setup{config: everyModel, inside: true})
	require.Error(t, err, "there is no broker to start")
	require.Nil(t, l)
	l, err = startLab(t.Context(), setup{config: everyModel})
	require.NoError(t, err)
	defer l.close()
	for _, sc := range scenarios {
		if sc.name != "plain" && sc.name != "burst" {
			continue
		}
		results, err := l.rounds(t.Context(), sc, options{rounds: 1, span: 50 * time.Millisecond})
		require.NoError(t, err)
		require.Len(t, results["floor"], 1)
		require.Positive(t, results["floor"][0].Rate, sc.name)
	}
}

func TestAPlotShowsEveryPoint(t *testing.T) {
	svg := string(draw("workers", []point{{n: 1, cpu: 1.5, worker: 2}, {n: 10_000, cpu: 1.6, worker: 2.25}}))
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})))
	require.Equal(t, 4, strings.Count(svg, "<circle"))
	require.Contains(t, svg, ">10000<")
}

func TestConfigurationsGrow(t *testing.T) {
	text := grown(2, 3, 3)("http://x")
	require.Equal(t, 6, strings.Count(text, "provider: mock"))
	require.Contains(t, text, "feature-1:")
	require.NotContains(t, text, "feature-2:")
}

func TestModelsNameTheirBehaviour(t *testing.T) {
	b, err := parseBehaviour("tokens-100_first-100ms_gap-20ms_write-8")
	require.NoError(t, err)
	require.Equal(t, behaviour{tokens: 100, first: 100 * time.Millisecond, gap: 20 * time.Millisecond, write: 8}, b)
	_, err = parseBehaviour("colour-blue")
	require.ErrorContains(t, err, "colour")
	for _, m := range models() {
		_, err := parseBehaviour(m)
		require.NoError(t, err)
	}
}

func TestABodyIsReadAtItsEnds(t *testing.T) {
	long := strings.Repeat(`\"model\":\"trap\",\"stream\":true,`, 1000)
	require.Equal(t, question{model: "m"}, ask([]byte(`{"messages":[{"role":"user","content":"`+long+strings.Repeat(" ", 600)+`"}],"model":"m"}`)))
	require.Equal(t, question{model: "m", stream: true, usage: true}, ask([]byte(`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)))
}

func TestUnknownFlagsAndWordsAreRefused(t *testing.T) {
	require.ErrorContains(t, run(context.Background(), []string{"-run", "("}), "-run")
	require.ErrorContains(t, run(context.Background(), []string{"plain"}), "plain")
	require.ErrorContains(t, run(context.Background(), []string{"grow", "-broker", "none", "-axis", "height"}), "-axis")
}
