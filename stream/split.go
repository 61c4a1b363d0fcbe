package stream

import (
	"unicode/utf8"

	"github.com/llmbus/llmbus/llm"
)

// split halves what a frame carries, between two characters. ok is false for a
// frame that cannot be made smaller.
func split(f llm.Frame) (head, tail llm.Frame, ok bool) {
	head, tail = f, f
	switch f.Type {
	case llm.FrameDelta:
		head.Text, tail.Text = halve(f.Text)
		return head, tail, head.Text != ""
	case llm.FrameToolCall:
		head.Arguments, tail.Arguments = halve(f.Arguments)
		tail.ID, tail.Name = "", ""
		return head, tail, head.Arguments != ""
	}
	return f, llm.Frame{}, false
}

// halve cuts s near its middle. head is empty when s is one character or less.
func halve(s string) (head, tail string) {
	at := len(s) / 2
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at], s[at:]
}
