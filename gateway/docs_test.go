package gateway_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/gateway"
)

func documentation(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/gateway.md")
	require.NoError(t, err)
	return string(text)
}

func TestTheDocumentationQuotesGoldenFiles(t *testing.T) {
	quotes := regexp.MustCompile("(?s)<!-- golden: ([a-z_.]+) -->\n```(?:json)?\n(.*?)```\n").FindAllStringSubmatch(documentation(t), -1)
	require.Len(t, quotes, 4)
	for _, quote := range quotes {
		want, err := os.ReadFile(filepath.Join("testdata", quote[1]))
		require.NoError(t, err)
		require.Equal(t, strings.TrimRight(string(want), "\n"), strings.TrimRight(quote[2], "\n"), quote[1])
	}
}

func TestTheDocumentationListsTheErrors(t *testing.T) {
	listed := map[string]gateway.Translation{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+) \\| `(\\w+)` \\| `(\\w+)` \\| (yes|no) \\|$").FindAllStringSubmatch(documentation(t), -1) {
		status, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		listed[m[1]] = gateway.Translation{Status: status, Kind: m[3], Code: m[4], Retry: m[5] == "yes"}
	}
	require.Equal(t, gateway.Translations(), listed)
}

func TestTheDocumentationListsTheFields(t *testing.T) {
	text := documentation(t)
	for _, name := range gateway.Fields() {
		require.Contains(t, text, "`"+name+"`")
	}
}
