package wire

import (
	"encoding/json"
	"testing"

	"github.com/llmbus/llmbus/llm"
	"github.com/stretchr/testify/require"
)

func TestAssembly(t *testing.T) {
	var a Assembly
	require.True(t, a.Empty())
	require.Equal(t, llm.Frame{Type: llm.FrameReasoning, Text: "hm"}, a.Reasoning("hm"))
	require.True(t, a.Empty(), "reasoning is no answer")
	a.Say("a")
	require.Equal(t, llm.Frame{Type: llm.FrameDelta, Text: "a"}, a.Unshown())
	require.Equal(t, llm.Frame{}, a.Unshown())
	a.Say("b")
	first, second := a.Call("id-1", "f"), a.Call("", "g")
	require.Equal(t, llm.Frame{Type: llm.FrameToolCall, ID: "id-1", Name: "f"}, first)
	require.Equal(t, 1, second.Index)
	require.Len(t, second.ID, callIDLength)
	a.Arguments(0, `{"x"`)
	require.Equal(t, llm.Frame{Type: llm.FrameToolCall, Arguments: `:1}`}, a.Arguments(0, `:1}`))
	require.True(t, a.HasArguments(0))
	require.False(t, a.HasArguments(1))

	third := a.WholeCall("id-1", "h", json.RawMessage(`"{\"y\":2}"`))
	require.NotEqual(t, "id-1", third.ID, "ids are unique within an answer")
	require.Equal(t, `{"y":2}`, third.Arguments)
	require.Equal(t, "{}", a.WholeCall("id-4", "i", json.RawMessage("null")).Arguments)

	r := a.Response(llm.FinishStop)
	require.Equal(t, "ab", r.Content)
	require.Equal(t, "hm", r.Reasoning)
	require.Equal(t, llm.FinishToolCalls, r.FinishReason)
	require.Equal(t, []llm.ToolCall{
		{ID: "id-1", Name: "f", Arguments: `{"x":1}`}, {ID: second.ID, Name: "g", Arguments: "{}"},
		{ID: third.ID, Name: "h", Arguments: `{"y":2}`}, {ID: "id-4", Name: "i", Arguments: "{}"},
	}, r.ToolCalls)
	require.Equal(t, llm.FinishLength, a.Response(llm.FinishLength).FinishReason)
}

func TestSafeCallID(t *testing.T) {
	require.Equal(t, "call_A-1", SafeCallID("call_A-1"))
	foreign := SafeCallID("functions.get_weather:0")
	require.Regexp(t, `^[A-Za-z0-9]{9}$`, foreign)
	require.Equal(t, foreign, SafeCallID("functions.get_weather:0"))
	require.NotEqual(t, foreign, SafeCallID("functions.get_weather:1"))
	require.NotEqual(t, NewCallID(), NewCallID())
}

func TestShortCallID(t *testing.T) {
	require.Equal(t, "AbC123xyz", ShortCallID("AbC123xyz"))
	for _, foreign := range []string{"call_n1", "", "AbC123xy_", "AbC123xyzz"} {
		require.Regexp(t, `^[A-Za-z0-9]{9}$`, ShortCallID(foreign))
		require.Equal(t, ShortCallID(foreign), ShortCallID(foreign))
	}
	require.NotEqual(t, ShortCallID("call_1"), ShortCallID("call_2"))
}
