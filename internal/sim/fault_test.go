package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseModel(t *testing.T) {
	answer := func(f Fault) Fault {
		if f.Tokens == 0 {
			f.Tokens = defaultTokens
		}
		return f
	}
	for name, want := range map[string]Fault{
		"gpt-5":                      {Kind: OK},
		"sim-ok":                     {Kind: OK},
		"sim-ok-t60-g20ms":           {Kind: OK, Tokens: 60, Gap: 20 * time.Millisecond},
		"sim-ok-g0.5":                {Kind: OK, Gap: 500 * time.Millisecond},
		"sim-status-503":             {Kind: Status, Code: 503},
		"sim-429-retry-2":            {Kind: Status, Code: 429, Wait: 2 * time.Second},
		"sim-status-429-retry-250ms": {Kind: Status, Code: 429, Wait: 250 * time.Millisecond},
		"sim-reset":                  {Kind: Reset},
		"sim-reset-after-3":          {Kind: ResetAfter, After: 3},
		"sim-hang":                   {Kind: Hang},
		"sim-slow-first":             {Kind: SlowFirst, Wait: 20 * time.Second},
		"sim-slow-first-50ms-t3":     {Kind: SlowFirst, Wait: 50 * time.Millisecond, Tokens: 3},
		"sim-stall-after-20":         {Kind: StallAfter, After: 20},
		"sim-cut-after":              {Kind: CutAfter, After: 4},
		"sim-end-after-0":            {Kind: EndAfter},
		"sim-error-after-1":          {Kind: ErrorAfter, After: 1},
		"sim-malformed":              {Kind: Malformed, After: 2},
		"sim-no-done":                {Kind: NoDone},
		"sim-wrong-json":             {Kind: WrongJSON},
		"sim-json":                   {Kind: JSON},
		"sim-tools":                  {Kind: Tools},
		"sim-down-3":                 {Kind: Down, Wait: 3 * time.Second},
		"sim-refuse":                 {Kind: Down, Wait: 5 * time.Second},
		"sim-once-503":               {Kind: Status, Code: 503, First: 1},
		"sim-first-3-stall-after-2":  {Kind: StallAfter, After: 2, First: 3},
		"sim-first-2-ok-t5":          {Kind: OK, First: 2, Tokens: 5},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseModel(name)
			require.NoError(t, err)
			require.Equal(t, answer(want), got)
		})
	}
}

func TestParseModelRefuses(t *testing.T) {
	for _, name := range []string{
		"sim-", "sim-nothing", "sim-okay", "sim-ok-5", "sim-status", "sim-status-99", "sim-status-503-later",
		"sim-429-retry-soon", "sim-stall-after-x", "sim-slow-first-forever", "sim-first", "sim-first-x-ok", "sim-once",
		"sim-ok-t9999999", "sim-down-25h", "sim--ok", "sim-t5",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseModel(name)
			require.Error(t, err)
		})
	}
}

func TestHelpNamesEveryFault(t *testing.T) {
	for _, k := range kinds {
		require.Contains(t, Help(), "  "+k.usage)
		require.True(t, strings.HasPrefix(k.usage, string(k.kind)))
	}
}

func FuzzParseModel(f *testing.F) {
	f.Add("sim-first-3-stall-after-2-t9-g1ms")
	f.Add("sim-429-retry-2")
	f.Fuzz(func(t *testing.T, name string) {
		fault, err := ParseModel(name)
		if err != nil {
			return
		}
		require.NotEmpty(t, fault.Kind)
		require.LessOrEqual(t, fault.Tokens, maxTokens)
		require.GreaterOrEqual(t, fault.Wait, time.Duration(0))
	})
}
