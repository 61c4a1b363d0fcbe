// Package llm holds the words every other package speaks: the wire types of
// llmbus (Request, Response, Frame, Error) and the one seam, Completer, that
// every layer implements.
//
// The types marshal to the JSON that docs/protocol.md shows. Values that carry
// a prompt or a completion implement slog.LogValuer and redact themselves, so
// that logging one by mistake leaks nothing.
package llm
