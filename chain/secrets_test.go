package chain_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
	"github.com/llmbus/llmbus/provider/fake"
)

// logged runs one request over one provider and returns the whole log.
func logged(t *testing.T, step fake.Step) string {
	t.Helper()
	var log bytes.Buffer
	rig := newRig(t, nil, fake.New(step))
	rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	rig.Load([]chain.Feature{rig.feature})
	complete(t.Context(), rig, ask())
	return log.String()
}

func TestATicketIsLoggedOnlyInAFormThatProvidersUse(t *testing.T) {
	for id, shown := range map[string]bool{
		"req_011CSHoEeqs5C35K2UUqR7Fy": true, "550e8400-e29b-41d4-a716-446655440000": true, "0123456789abcdef0123": true,
		"a_word_of_an_answer": false, "onelongwordofananswer1": false, "req_two words here": false, "<42>": false,
	} {
		f := provider.Fail(llm.OutcomeAuth, nil)
		f.RequestID = id
		require.Equal(t, shown, bytes.Contains([]byte(logged(t, fake.Fails(f))), []byte(id)), id)
	}
}

func TestAModelsNameThatIsPartOfItsAnswerIsNotLogged(t *testing.T) {
	require.Contains(t, logged(t, fake.Step{Response: &llm.Response{Content: "hello", ModelVersion: "m-2026"}}), "m-2026")
	require.NotContains(t, logged(t, fake.Step{Response: &llm.Response{Content: "the canary sings", ModelVersion: "canary"}}), "canary")
}

func TestTheTextOfAnUnexpectedErrorIsNotLogged(t *testing.T) {
	require.NotContains(t, logged(t, fake.Fails(errors.New("canary"))), "canary")
}

func TestTheValueOfAPanicIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	rig := newRig(t, nil, fake.Func(func(int, *llm.Request) fake.Step { panic("canary") }))
	rig.Router = chain.NewRouter(chain.Config{Switches: rig.switches, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	rig.Load([]chain.Feature{rig.feature})
	require.Equal(t, llm.CodeUnavailable, complete(t.Context(), rig, ask()).err.Code)
	require.Contains(t, log.String(), "adapter panicked")
	require.NotContains(t, log.String(), "canary")
}
