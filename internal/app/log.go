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
	manyGathered  = 32 << 10              // bytes that do not wait any longer
	mostGathered  = 1 << 20               // bytes that wait while nothing is taken; then who logs waits, too
)

// gatherer writes lines together that come faster than one each quiet, since
// every write is a call of the system, which costs as much as the line itself.
// It keeps their order. What waits is lost if the process is killed.
type gatherer struct {
	w io.Writer

	writing sync.Mutex // is held while w is at work, so that lines keep their order
	written []byte     // its memory is for the next lines

	mu    sync.Mutex
	lines []byte
	busy  bool        // w is at work
	wrote time.Time   // when it last began
	timer *time.Timer // runs while lines wait
	due   bool        // whoever logged the last line writes what waits
	ended bool
}

// Write takes one whole line. It never writes by itself, because the handler that
// calls it holds a lock which every line needs; see promptly. It reports no error.
func (g *gatherer) Write(line []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := len(g.lines)
	g.lines = append(g.lines, line...)
	switch after := len(g.lines); {
	case g.ended, before == 0 && !g.busy && time.Since(g.wrote) >= quiet, after >= mostGathered:
		g.due = true
	case before == 0:
		g.timer.Reset(longestGather)
	case before < manyGathered && after >= manyGathered:
		g.timer.Reset(0)
	}
	return len(line), nil
}

// overdue reports whether what waits must be written now.
func (g *gatherer) overdue() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.due
}

// flush writes what waits.
func (g *gatherer) flush() {
	g.writing.Lock()
	defer g.writing.Unlock()
	if !g.swap() {
		return
	}
	_, _ = g.w.Write(g.written) // there is nobody to tell
	g.mu.Lock()
	g.busy = false
	g.mu.Unlock()
	if cap(g.written) > 2*manyGathered {
		g.written = nil
	}
}

// swap makes what waits what is written, unless there is nothing.
func (g *gatherer) swap() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lines) == 0 {
		return false
	}
	g.lines, g.written, g.wrote, g.busy, g.due = g.written[:0], g.lines, time.Now(), true, false
	return true
}

func (g *gatherer) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.timer.Stop()
	g.flush()
}

// promptly is a handler whose warnings and errors do not wait.
type promptly struct {
	slog.Handler
	g *gatherer
}

// Handle writes the line, and with a warning all that wait before it.
func (h promptly) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn || h.g.overdue() {
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
