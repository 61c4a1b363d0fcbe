package scan

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
	"unsafe"
)

// Unquote returns the text of a JSON string that was checked before.
func Unquote(raw []byte) string { return string(Bare(raw)) }

// Share is Unquote without a copy where the text stands as it is: the string is
// then a part of raw, which must never change.
func Share(raw []byte) string {
	text := Bare(raw)
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Bare is Unquote without a copy where the text stands as it is: the result may
// be a part of raw.
func Bare(raw []byte) []byte {
	inner := raw[1 : len(raw)-1]
	if utf8.Valid(inner) {
		if bytes.IndexByte(inner, '\\') < 0 {
			return inner
		}
		if text, ok := unescape(inner); ok {
			return text
		}
	}
	var s string
	_ = json.Unmarshal(raw, &s) // checked: it is a string
	return []byte(s)
}

// unescape copies text with its escapes resolved. ok is false for escapes by
// number, which come in pairs and halves of pairs.
func unescape(s []byte) (text []byte, ok bool) {
	text = make([]byte, 0, len(s))
	for {
		at := bytes.IndexByte(s, '\\')
		if at < 0 {
			return append(text, s...), true
		}
		c := s[at+1]
		switch c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'u':
			return nil, false
		}
		text = append(append(text, s[:at]...), c)
		s = s[at+2:]
	}
}
