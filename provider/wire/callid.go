package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
)

// callIDLength and its alphabet are the narrowest that any provider asks for
// (Mistral), so an id of ours may travel to all of them.
const (
	callIDLength   = 9
	callIDAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// NewCallID makes an id for a tool call whose provider gave it none.
func NewCallID() string {
	var random [callIDLength]byte
	_, _ = rand.Read(random[:]) // never fails
	return callID(random[:])
}

// SafeCallID returns id if it consists of A-Z, a-z, 0-9, _ and -, else an id
// made from it: the same for a call and its result, wherever they are.
func SafeCallID(id string) string {
	if token := strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	}); !token && len(id) <= 64 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return callID(sum[:])
}

func callID(random []byte) string {
	var id [callIDLength]byte
	for i := range id {
		id[i] = callIDAlphabet[int(random[i])%len(callIDAlphabet)]
	}
	return string(id[:])
}

// ShortCallID returns id if it is one of nine letters and digits, as Mistral
// demands, else such an id made from it: the same for a call and its result.
func ShortCallID(id string) string {
	if len(id) == callIDLength && !strings.ContainsFunc(id, func(r rune) bool { return !strings.ContainsRune(callIDAlphabet, r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return callID(sum[:])
}
