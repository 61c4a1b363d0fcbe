package e2e

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// want is how a request must end.
type want struct {
	calls  string        // every attempt in order, as provider:class; each is one call on the wire
	code   llm.Code      // the terminal reason; empty is an answer by the last provider that was called
	words  int           // how many words a stream showed that broke off
	after  time.Duration // the time used, at least
	within time.Duration // and at most; 0 is ample
	again  bool          // the caller is told when to come back
}

// ample is more time than anything takes but a limit that is not to be reached,
// on a machine that has much else to do.
const ample = 3 * time.Second

// ways are the two forms in which every scenario is run.
var ways = map[string]bool{"request": false, "stream": true}

// check compares an end with what it must be. made counts the calls that each
// provider saw.
func (w want) check(t *testing.T, got end, made map[string]int) {
	t.Helper()
	attempts := got.Attempts
	if got.Error != nil {
		attempts = got.Error.Attempts
	}
	var calls []string
	listed := map[string]int{}
	for _, a := range attempts {
		calls = append(calls, fmt.Sprintf("%s:%s", a.Provider, a.Class))
		listed[a.Provider]++
	}
	require.Equal(t, w.calls, strings.Join(calls, " "), "the attempts")
	for provider, n := range made {
		require.Equal(t, listed[provider], n, "calls on the wire to %s", provider)
	}
	require.GreaterOrEqual(t, got.took, w.after)
	require.Less(t, got.took, cmp.Or(w.within, ample))
	if w.code != "" {
		w.checkError(t, got)
		return
	}
	require.Nil(t, got.Error)
	require.Equal(t, llm.ServedByModel, got.ServedBy)
	require.Equal(t, attempts[len(attempts)-1].Provider, got.Provider)
	require.NotEmpty(t, got.Content)
	require.Equal(t, llm.FinishStop, got.FinishReason)
}

func (w want) checkError(t *testing.T, got end) {
	t.Helper()
	require.NotNil(t, got.Error, "an answer in place of %s", w.code)
	require.Equal(t, w.code, got.Error.Code)
	require.Empty(t, got.Content)
	require.Len(t, strings.Fields(got.text), w.words, "words that the caller has seen")
	require.Equal(t, w.again, got.Error.RetryAfterMS > 0, "retry_after_ms is %d", got.Error.RetryAfterMS)
}

// askOnce starts a fleet of three, asks it once and stops it.
func askOnce(t *testing.T, p plan, q question) end {
	t.Helper()
	f := startFleet(t, 3, p)
	defer f.halt()
	book := newLedger(t, f.caller)
	got, err := book.ask(t.Context(), q)
	require.NoError(t, err)
	f.settle(t, book)
	return got
}

// settle stops the workers and demands that nothing is owed and nothing was
// sent twice.
func (f *fleet) settle(t testing.TB, book *ledger) {
	t.Helper()
	for _, w := range f.workers {
		w.halt()
	}
	book.check(t)
}
