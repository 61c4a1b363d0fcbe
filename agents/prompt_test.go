package agents_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/agents"
	"github.com/llmbus/llmbus/internal/natstest"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

func TestAPromptIsAnsweredInPieces(t *testing.T) {
	for name, payload := range map[string]string{"text": "hello", "an object": ` {"prompt":"hello","x_more":1}`, "no attachments": `{"prompt":"hello","attachments":[]}`} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				p := fake.New(fake.Step{Pieces: []string{"Hel", "lo <&>\n"}})
				r := start(t, feature{p})
				require.Equal(t, []string{"ack", "Hel", "lo <&>\n", "-"}, told(t, received(t, r.prompt(t, payload))))
				require.Equal(t, "hello", p.Calls()[0].Request.Messages[0].Content.Text())
				require.Equal(t, "a", p.Calls()[0].Request.Feature)
			})
		})
	}
}

func TestBadPromptsAreRefusedWithoutAnyCall(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New()
		r := start(t, feature{p})
		for _, payload := range []string{"", "  ", "{", `{"prompt":""}`, `{"prompt":7}`, `{}`, "\xff", `{"prompt":"a","attachments":[{"filename":"f","content":""}]}`} {
			messages := received(t, r.prompt(t, payload))
			require.Equal(t, []string{"error 400", "-"}, told(t, messages), payload)
			require.Contains(t, messages[0].Header.Get("Nats-Service-Error"), "invalid_request: ")
			require.Contains(t, string(messages[0].Data), `{"error":{"code":"invalid_request"`)
		}
		aimed := r.listen(t, "$KV.llm_flags.all")
		require.NoError(t, r.caller.PublishRequest(promptA, aimed.Subject, []byte("hello")))
		require.Empty(t, received(t, aimed))
		require.Zero(t, p.Count())
	})
}

func TestSilenceIsFilledWithAcks(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, feature{fake.New(fake.Step{Wait: 25 * time.Second, Pieces: []string{"a", "b"}, Gap: 6 * time.Second})})
		inbox := r.prompt(t, "hello")
		natstest.Advance(time.Minute)
		require.Equal(t, []string{"ack", "ack", "ack", "a", "b", "-"}, told(t, received(t, inbox)))
	})
}

func TestErrorsEndAnAnswer(t *testing.T) {
	start1 := llm.Frame{Attempt: 1, Type: llm.FrameStart}
	hel := llm.Frame{Attempt: 1, Type: llm.FrameDelta, Text: "Hel"}
	end := func(text string) llm.Frame {
		return llm.Frame{Type: llm.FrameEnd, Response: &llm.Response{Content: text}}
	}
	for name, tc := range map[string]struct {
		says llm.Completer
		want []string
	}{
		"an error":                   {feature{fake.New(fake.FailsWith(llm.OutcomeUnavailable))}, []string{"ack", "error 503", "-"}},
		"an error frame":             {frames{start1, {Type: llm.FrameError, Error: llm.ErrSwitchedOff}}, []string{"ack", "error 503", "-"}},
		"no end":                     {frames{start1, hel}, []string{"ack", "Hel", "error 500", "-"}},
		"a fallback, whole":          {frames{end("Later, please.")}, []string{"ack", "Later, please.", "-"}},
		"the rest with the end":      {frames{start1, hel, end("Hello")}, []string{"ack", "Hel", "lo", "-"}},
		"another text with the end":  {frames{start1, hel, end("Goodbye")}, []string{"ack", "Hel", "error 502", "-"}},
		"a job takes over":           {frames{{Type: llm.FrameEnd, Response: &llm.Response{Job: &llm.Job{Result: "llm.results.1"}}}}, []string{"ack", "error 503", "-"}},
		"begun anew after text":      {frames{start1, hel, {Attempt: 2, Type: llm.FrameStart}}, []string{"ack", "Hel", "error 502", "-"}},
		"begun anew before any text": {frames{start1, {Attempt: 2, Type: llm.FrameStart}, {Attempt: 2, Type: llm.FrameDelta, Text: "Hello"}, end("Hello")}, []string{"ack", "Hello", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			natstest.Bubble(t, func(t *testing.T) {
				r := start(t, tc.says)
				require.Equal(t, tc.want, told(t, received(t, r.prompt(t, "hello"))))
			})
		})
	}
}

func TestALongTextIsSentInPieces(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		text := strings.Repeat("Grüße ", 20_000)
		r := start(t, frames{{Type: llm.FrameEnd, Response: &llm.Response{Content: text}}})
		list := told(t, received(t, r.prompt(t, "hello")))
		require.Equal(t, text, strings.Join(list[1:len(list)-1], ""))
		require.Greater(t, len(list), 5)
	})
}

func TestTooManyPromptsAreToldToComeBack(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, feature{fake.New(fake.Hangs())}, func(c *agents.Config) { c.Prompts, c.Grace = 1, time.Second })
		r.prompt(t, "hello")
		messages := received(t, r.prompt(t, "hello"))
		require.Equal(t, []string{"error 429", "-"}, told(t, messages))
		require.Equal(t, "1", messages[0].Header.Get("Retry-After"))
	})
}

func TestACallerThatIsGoneTakesItsCallWithIt(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Hangs())
		r := start(t, feature{p})
		inbox := r.prompt(t, "hello")
		require.NoError(t, inbox.Unsubscribe())
		natstest.Advance(9 * time.Second)
		require.Equal(t, 1, p.Running())
		natstest.Advance(2 * time.Second)
		require.Zero(t, p.Running())
		require.ErrorIs(t, p.Calls()[0].Cause, llm.ErrCancelled)
	})
}

func TestTimeRunsOut(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		r := start(t, feature{fake.New(fake.Hangs())}, func(c *agents.Config) { c.MaxTimeout = 3 * time.Second })
		inbox := r.prompt(t, "hello")
		natstest.Advance(4 * time.Second)
		require.Equal(t, []string{"ack", "error 504", "-"}, told(t, received(t, inbox)))
	})
}

func TestShutdownLetsPromptsEndAndBreaksOffTheRest(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T) {
		p := fake.New(fake.Step{Wait: 2 * time.Second, Pieces: []string{"done"}}, fake.Hangs())
		r := start(t, feature{p}, func(c *agents.Config) { c.Grace = 5 * time.Second })
		first, second := r.prompt(t, "hello"), r.prompt(t, "hello")
		begun := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 5*time.Second, time.Since(begun))
		synctest.Wait()
		require.Equal(t, []string{"ack", "done", "-"}, told(t, received(t, first)))
		require.Equal(t, []string{"ack", "error 502", "-"}, told(t, received(t, second)))
	})
}
