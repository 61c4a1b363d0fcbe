package llm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// protocol is the contract as callers read it.
func protocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/protocol.md")
	require.NoError(t, err)
	return string(text)
}

func TestTheProtocolQuotesEveryGoldenFile(t *testing.T) {
	quoted := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- golden: (\\w+) -->\n```json\n(.*?)```\n").FindAllStringSubmatch(protocol(t), -1) {
		quoted[m[1]] = m[2]
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, path := range files {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		require.Equal(t, string(want), quoted[name], name)
		delete(quoted, name)
	}
	require.Empty(t, quoted, "quoted, but no such file")
}

func TestTheProtocolListsTheCodes(t *testing.T) {
	listed := map[llm.Code]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| .(\w+). \| (\d{3}) \|`).FindAllStringSubmatch(protocol(t), -1) {
		number, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		listed[llm.Code(m[1])] = number
	}
	require.Len(t, listed, 18)
	for code, number := range listed {
		require.Equal(t, number, code.Status(), code)
	}
}

func TestTheProtocolQuotesRefusals(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| (nothing|`\\{.*?`) \\| `(.*)` \\|$").FindAllStringSubmatch(protocol(t), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		payload := strings.Trim(strings.TrimPrefix(row[1], "nothing"), "`")
		_, err := llm.DecodeRequest([]byte(payload))
		require.EqualError(t, err, "invalid_request: "+row[2], payload)
	}
}
