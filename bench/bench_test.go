package main

import (
	"context"
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

func TestEverySideAnswersWholeAndStreamed(t *testing.T) {
	l, err := startLab(t.Context(), "")
	require.NoError(t, err)
	defer l.close()
	for _, name := range []string{"plain", "plain-embedded", "burst"} {
		for _, sc := range scenarios {
			if sc.name != name {
				continue
			}
			results, err := l.rounds(t.Context(), sc, options{rounds: 1, span: 50 * time.Millisecond})
			require.NoError(t, err)
			for _, side := range []string{"floor", "broker"} {
				require.Len(t, results[side], 1, name)
				require.Positive(t, results[side][0].Rate, "%s: %s", name, side)
			}
		}
	}
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
}
