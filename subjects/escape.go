package subjects

import "strings"

const hexDigits = "0123456789ABCDEF"

// Escape makes any text one token that is valid in a NATS subject and in a KV
// key. A-Z, a-z, 0-9, - and _ stay as they are and every other byte becomes =XX
// in upper-case hex. The empty text becomes "=", since a token cannot be empty.
func Escape(s string) string {
	if s == "" {
		return "="
	}
	n := 0
	for i := range len(s) {
		if !readable(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := range len(s) {
		if c := s[i]; readable(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// Unescape is the inverse of Escape. ok is false for a token that Escape does
// not make, so that one text has one token and no other.
func Unescape(token string) (s string, ok bool) {
	if token == "=" {
		return "", true
	}
	if token == "" {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '=' {
			if i+2 >= len(token) {
				return "", false
			}
			hi, lo := strings.IndexByte(hexDigits, token[i+1]), strings.IndexByte(hexDigits, token[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			if c = byte(hi<<4 | lo); readable(c) {
				return "", false
			}
			i += 2
		} else if !readable(c) {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

func readable(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// BreakerKey is "<provider>.<model>", both escaped: the key of a breaker in the
// llm_breakers bucket and the end of its failure subject. An empty model makes
// the key of the whole provider.
func BreakerKey(provider, model string) string {
	if model == "" {
		return Escape(provider)
	}
	return Escape(provider) + "." + Escape(model)
}

// ParseBreakerKey is the inverse of BreakerKey.
func ParseBreakerKey(key string) (provider, model string, ok bool) {
	p, m, hasModel := strings.Cut(key, ".")
	if provider, ok = Unescape(p); !ok || !hasModel {
		return provider, "", ok
	}
	model, ok = Unescape(m)
	return provider, model, ok
}
