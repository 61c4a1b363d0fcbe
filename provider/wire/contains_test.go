package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContains(t *testing.T) {
	for _, word := range []string{"a", "ab", "req_1", "-", "x9", "_"} {
		for _, text := range []string{"", word, word[:len(word)-1], "aa" + word, word + "zz", "req_req_1", "x-9 x9", "bab"} {
			require.Equal(t, strings.Contains(text, word), contains([]byte(text), word), "%q in %q", word, text)
		}
	}
}
