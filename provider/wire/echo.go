package wire

import (
	"bytes"
	"slices"
	"strings"
)

// What a provider sends may repeat what it was sent, or what it made of it, in
// any field. So a value gets into logs and answers only where its form leaves no
// room for more, or where it is no part of what was sent.

const maxVersion = 128

// echoes reports whether s is a part of what this call sent: of its body, or of
// a header, which may be the key.
func (r *Response) echoes(s string) bool {
	if contains(r.sent, s) {
		return true
	}
	for _, values := range r.client.cfg.Header {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, s) }) {
			return true
		}
	}
	return false
}

// contains is bytes.Contains for long text and words that are unlike it. It looks
// for the byte of the word that the text has least of, most likely, where
// bytes.Contains looks for the first and stops at every one.
func contains(text []byte, word string) bool {
	at := 0
	for i := range word {
		if rarity(word[i]) > rarity(word[at]) {
			at = i
		}
	}
	for from := at; from < len(text); {
		next := bytes.IndexByte(text[from:], word[at])
		if next < 0 {
			return false
		}
		if from += next; bytes.HasPrefix(text[from-at:], []byte(word)) {
			return true
		}
		from++
	}
	return false
}

func rarity(c byte) int {
	switch {
	case 'a' <= c && c <= 'z', c == ' ':
		return 0
	case '0' <= c && c <= '9', c == '-', c == '.':
		return 1
	}
	return 2
}

// CleanID returns an id that the provider gave if it looks like one and is no
// part of what was sent, else "".
func (r *Response) CleanID(id string) string {
	if id = code(id, maxRequestID); id == "" || r.echoes(id) {
		return ""
	}
	return id
}

// Version returns what the provider says of the model that it ran, if it looks
// like a name and is no part of what was sent, but for the name of the model
// that was asked for.
func (r *Response) Version(name, asked string) string {
	plain := name
	if strings.ContainsAny(name, "/:@") {
		plain = strings.NewReplacer("/", "", ":", "", "@", "").Replace(name)
	}
	if len(name) > maxVersion || code(plain, maxVersion) == "" || !strings.Contains(asked, name) && r.echoes(name) {
		return ""
	}
	return name
}

// loggableCode reports whether a code is one that providers document. What else
// stands in its place could be anything.
func loggableCode(code string) bool {
	if len(code) <= 4 && strings.Trim(code, "0123456789") == "" {
		return true
	}
	if slices.Contains(documented, code) || implied([]string{code}) != 500 {
		return true
	}
	return slices.ContainsFunc(rules(), func(r rule) bool { return slices.Contains(r.codes, code) })
}

// documented are codes that decide nothing and tell something.
var documented = []string{
	"server_error", "api_error", "internal", "internalservererror", "internal_error", "unavailable", "unavailable_error",
	"service_unavailable_error", "unknown_parameter", "unsupported_value", "unsupported_parameter", "invalid_value",
	"missing_required_parameter", "invalid_type", "invalid_function_parameters", "invalid_json_schema", "string_above_max_length",
	"quota_exceeded", "tokens", "requests", "insufficient_permissions", "account_deactivated", "unknown_url", "json_invalid",
	"aborted", "cancelled", "out_of_range", "unimplemented", "data_loss", "already_exists", "unknown",
}
