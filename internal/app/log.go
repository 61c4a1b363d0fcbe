package app

import (
	"io"
	"log/slog"
)

// NewLog makes the logger that the environment asks for.
func (e *Environment) NewLog(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: e.LogLevel}
	if e.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
