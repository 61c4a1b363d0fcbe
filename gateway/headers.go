package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/llmbus/llmbus/llm"
)

// credit says in headers who gave an answer.
func credit(h http.Header, resp *llm.Response) {
	if resp.Provider != "" {
		h.Set(headerProvider, resp.Provider)
	}
	h.Set(headerServedBy, string(resp.ServedBy))
	if resp.Fallback != "" {
		h.Set(headerFallback, string(resp.Fallback))
	}
}

const maxWarningBytes = 1024

// warn names in a header what had no effect. Names come from the caller, so that
// what a header cannot hold is replaced.
func warn(h http.Header, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.Join(warnings, "; "))
	h.Set(headerWarnings, text[:min(len(text), maxWarningBytes)])
}

// note logs an error that a caller gets. What callers alone can mend is for
// those who look for it.
func (s *Server) note(ctx context.Context, what, id string, p *problem) {
	level := slog.LevelDebug
	if p.status >= http.StatusInternalServerError {
		level = slog.LevelInfo
	}
	s.log.LogAttrs(ctx, level, what, slog.String("id", id), slog.Int("status", p.status), slog.String("code", p.code))
}
