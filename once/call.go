package once

import (
	"strings"
	"sync"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/stream"
)

// call is one that this worker makes, and who follows it. Tool calls are not
// followed piece by piece: they come with the end. The zero value is ready.
type call struct {
	mu        sync.Mutex
	start     *llm.Frame // of the attempt that is shown
	text      strings.Builder
	followers map[string]*stream.Writer // by the token of who follows
	last      *llm.Frame
}

// add takes the next frame of the call and passes it on to those who follow.
func (c *call) add(f llm.Frame) {
	if f.Type != llm.FrameStart && !f.Visible() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Type == llm.FrameStart {
		c.start = &f
		c.text.Reset()
	} else {
		c.text.WriteString(f.Text)
	}
	c.send(f)
}

// join sends what was shown so far, and from now on every frame. One who comes
// again is served anew.
func (c *call) join(who string, w *stream.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.followers[who]; before != nil {
		_ = before.Write(released.last) // nobody reads it; it ends the pings
	}
	if c.followers == nil {
		c.followers = make(map[string]*stream.Writer)
	}
	c.followers[who] = w
	if c.start != nil {
		write(w, *c.start)
	}
	if c.text.Len() > 0 {
		text := llm.Frame{Type: llm.FrameDelta, Text: c.text.String()}
		if c.start != nil {
			text.Attempt = c.start.Attempt
		}
		write(w, text)
	}
	if c.last != nil {
		write(w, *c.last)
	}
}

// end sends the last frame to all, and to those who come later.
func (c *call) end(f llm.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resp := f.Response; resp != nil && c.start == nil { // the call was not streamed
		c.start = &llm.Frame{Attempt: max(1, len(resp.Attempts)), Type: llm.FrameStart, Provider: resp.Provider, Model: resp.Model}
		c.send(*c.start)
	}
	if c.start != nil {
		f.Attempt = c.start.Attempt
	}
	c.last = &f
	c.send(f)
}

func (c *call) send(f llm.Frame) {
	for _, w := range c.followers {
		write(w, f)
	}
}

// write leaves a loss to the reader, who sees the gap and comes again.
func write(w *stream.Writer, f llm.Frame) { _ = w.Write(f) }
