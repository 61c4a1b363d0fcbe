package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth is the deepest nesting of objects and lists that Check takes, so that
// hostile input cannot exhaust a stack.
const MaxDepth = 64

// Errors of Check.
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = fmt.Errorf("nested deeper than %d levels", MaxDepth)
)

// Check reads one JSON text in a single pass. Its error is ErrSyntax or
// ErrDepth.
func Check(data []byte) error {
	s := scanner{data: data}
	switch ok := s.value(0) && s.at == len(data); {
	case s.deep:
		return ErrDepth
	case !ok:
		return ErrSyntax
	}
	return nil
}

type scanner struct {
	data []byte
	at   int
	deep bool // nested deeper than MaxDepth

	checked bool // the text is known to be JSON
}

// value skips one value with the white space around it.
func (s *scanner) value(depth int) bool {
	s.space()
	if s.at == len(s.data) {
		return false
	}
	ok := false
	switch c := s.data[s.at]; c {
	case '{':
		ok = s.members('}', depth, s.member)
	case '[':
		ok = s.members(']', depth, s.value)
	case '"':
		ok = s.str()
	case 't':
		ok = s.literal("true")
	case 'f':
		ok = s.literal("false")
	case 'n':
		ok = s.literal("null")
	default:
		ok = s.number()
	}
	s.space()
	return ok
}

// members skips what is between two brackets, separated by commas.
func (s *scanner) members(end byte, depth int, member func(int) bool) bool {
	if depth++; depth > MaxDepth {
		s.deep = true
		return false
	}
	s.at++
	if s.space(); s.next(end) {
		return true
	}
	for {
		if !member(depth) {
			return false
		}
		if s.next(end) {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// member skips a key and its value.
func (s *scanner) member(depth int) bool {
	s.space()
	if s.at == len(s.data) || s.data[s.at] != '"' || !s.str() {
		return false
	}
	s.space()
	return s.next(':') && s.value(depth)
}

func (s *scanner) next(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

// number follows the grammar of RFC 8259, section 6.
func (s *scanner) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// str skips a string, from one byte to the next that is not plain.
func (s *scanner) str() bool {
	if s.checked {
		return s.skipString()
	}
	data, i := s.data, s.at+1
	for i < len(data) {
		if i+8 <= len(data) {
			n := plain(binary.LittleEndian.Uint64(data[i:]))
			if i += n; n == 8 {
				i += run(data[i:])
				continue
			}
		}
		switch c := data[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := escaped(data[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return false
}

// skipString is str for a string that is known to be one: only its end is
// looked for.
func (s *scanner) skipString() bool {
	for i := s.at + 1; ; i++ {
		next := bytes.IndexByte(s.data[i:], '"')
		if next < 0 {
			return false
		}
		from := i
		i += next
		slashes := 0
		for slashes < i-from && s.data[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			s.at = i + 1
			return true
		}
	}
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain is how many of the eight bytes stand before the first that ends a string,
// begins an escape or is a control character. Subtracting from each byte borrows
// into its high bit where the byte was smaller; bytes that had that bit already
// are no ASCII. What a borrow does to the bytes after it does not matter.
func plain(w uint64) int { return bits.TrailingZeros64(special(w)&highs) / 8 }

func special(w uint64) uint64 {
	quote, slash := w^(lows*'"'), w^(lows*'\\')
	return (w-lows*' ')&^w | (quote-lows)&^quote | (slash-lows)&^slash
}

// run is how many bytes, in steps of 32, are plain.
func run(b []byte) (n int) {
	for ; len(b) >= 32; b = b[32:] {
		if (special(binary.LittleEndian.Uint64(b))|special(binary.LittleEndian.Uint64(b[8:]))|
			special(binary.LittleEndian.Uint64(b[16:]))|special(binary.LittleEndian.Uint64(b[24:])))&highs != 0 {
			return n
		}
		n += 32
	}
	return n
}

// Plain is how many bytes of s, from the first on and in steps of eight, are
// ASCII that stands in a JSON string as it is.
func Plain(s string) (n int) {
	for n+8 <= len(s) {
		w := uint64(s[n]) | uint64(s[n+1])<<8 | uint64(s[n+2])<<16 | uint64(s[n+3])<<24 |
			uint64(s[n+4])<<32 | uint64(s[n+5])<<40 | uint64(s[n+6])<<48 | uint64(s[n+7])<<56 // one load
		if w&highs != 0 || plain(w) < 8 {
			return n
		}
		n += 8
	}
	return n
}

// escaped is the length of the escape that data begins with, or 0.
func escaped(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) >= 6 && isHex(data[2]) && isHex(data[3]) && isHex(data[4]) && isHex(data[5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Members calls use for every key and value of an object that was checked
// before, in the order of the text. It reports whether raw is an object; an error
// of use ends the walk and is returned.
func Members(raw []byte, use func(key, value []byte) error) (isObject bool, err error) {
	s := scanner{data: raw, checked: true}
	if s.space(); !s.next('{') {
		return false, nil
	}
	if s.space(); s.next('}') {
		return true, nil
	}
	for {
		s.space()
		from := s.at
		s.str()
		key := Bare(raw[from:s.at])
		s.space()
		s.next(':')
		if err := use(key, s.take()); err != nil {
			return true, err
		}
		if !s.next(',') {
			return true, nil
		}
	}
}

// Elements is Members for a list.
func Elements(raw []byte, use func(i int, value []byte) error) (isList bool, err error) {
	s := scanner{data: raw, checked: true}
	if s.space(); !s.next('[') {
		return false, nil
	}
	if s.space(); s.next(']') {
		return true, nil
	}
	for i := 0; ; i++ {
		if err := use(i, s.take()); err != nil {
			return true, err
		}
		if !s.next(',') {
			return true, nil
		}
	}
}

// take skips a value and returns it without the white space around it.
func (s *scanner) take() []byte {
	s.space()
	from := s.at
	s.value(0)
	return bytes.TrimRight(s.data[from:s.at], " \t\r\n")
}

// IsString reports whether raw is one JSON string and nothing else.
func IsString(raw []byte) bool {
	s := scanner{data: raw}
	return len(raw) > 0 && raw[0] == '"' && s.str() && s.at == len(raw)
}
