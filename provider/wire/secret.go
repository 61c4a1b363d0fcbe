package wire

import (
	"fmt"
	"log/slog"
)

// Secret is a key that hides itself from prints, logs and JSON.
type Secret string

const hidden = "[hidden]"

// Reveal returns the key.
func (s Secret) Reveal() string { return string(s) }

// String hides the key.
func (s Secret) String() string { return hidden }

// GoString hides the key.
func (s Secret) GoString() string { return hidden }

// Format hides the key under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the key.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the key.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
