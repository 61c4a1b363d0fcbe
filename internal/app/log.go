package app

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// NewLog makes the logger that the environment asks for. Lines that follow each
// other closely are written together; end writes what is left, and from then on
// each line is written at once.
func (e *Environment) NewLog(w io.Writer) (log *slog.Logger, end func()) {
	g := &gatherer{w: w}
	g.timer = time.AfterFunc(longestGather, g.flush) // once for nothing
	options := &slog.HandlerOptions{Level: e.LogLevel}
	var h slog.Handler = slog.NewTextHandler(g, options)
	if e.LogFormat == "json" {
		h = slog.NewJSONHandler(g, options)
	}
	return slog.New(promptly{h, g}), g.end
}

const (
	quiet         = 5 * time.Millisecond  // after it a line is written at once
	longestGather = 20 * time.Millisecond // a line waits for others
	mostGathered  = 32 << 10              // bytes that wait
)

// gatherer writes lines together that come faster than one each quiet, since
// every write is a call of the system, which costs as much as the line itself.
// It keeps their order. What waits is lost if the process is killed.
type gatherer struct {
	w io.Writer

	mu    sync.Mutex
	lines []byte
	wrote time.Time   // when it last did
	timer *time.Timer // runs while lines wait
	ended bool
}

// Write takes one whole line. It reports no error of a line that waits.
func (g *gatherer) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lines) == 0 {
		if g.ended || time.Since(g.wrote) >= quiet {
			g.wrote = time.Now()
			return g.w.Write(line)
		}
		g.timer.Reset(longestGather)
	}
	if g.lines = append(g.lines, line...); len(g.lines) >= mostGathered {
		g.write()
	}
	return len(line), nil
}

func (g *gatherer) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.write()
}

func (g *gatherer) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer.Stop()
	g.write()
	g.ended = true
}

// write is called with mu held. A timer that still runs writes some lines a
// little sooner.
func (g *gatherer) write() {
	if len(g.lines) == 0 {
		return
	}
	_, _ = g.w.Write(g.lines) // there is nobody to tell
	g.wrote = time.Now()
	if g.lines = g.lines[:0]; cap(g.lines) > 2*mostGathered {
		g.lines = nil
	}
}

// promptly is a handler whose warnings and errors do not wait.
type promptly struct {
	slog.Handler
	g *gatherer
}

// Handle writes the line, and with a warning all that wait before it.
func (h promptly) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		h.g.flush()
	}
	return err
}

// WithAttrs keeps the wrapping.
func (h promptly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return promptly{h.Handler.WithAttrs(attrs), h.g}
}

// WithGroup keeps the wrapping.
func (h promptly) WithGroup(name string) slog.Handler {
	return promptly{h.Handler.WithGroup(name), h.g}
}
