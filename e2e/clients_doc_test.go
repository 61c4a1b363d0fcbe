package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var quotes = regexp.MustCompile("(?s)<!-- quote: (\\S+) (\\w+) -->\n```(\\w+)\n(.*?)```\n")

// TestPagesQuoteTheExamples holds the pages for clients to the files that CI
// runs. UPDATE_GOLDEN=1 writes the quotes anew.
func TestPagesQuoteTheExamples(t *testing.T) {
	for _, page := range []string{"docs/clients.md", "docs/agents.md"} {
		requireQuotes(t, page)
	}
}

func requireQuotes(t *testing.T, page string) {
	t.Helper()
	n := 0
	want := quotes.ReplaceAllStringFunc(document(t, page), func(quote string) string {
		n++
		m := quotes.FindStringSubmatch(quote)
		return "<!-- quote: " + m[1] + " " + m[2] + " -->\n```" + m[3] + "\n" + region(t, m[1], m[2]) + "```\n"
	})
	require.Positive(t, n, page)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile("../"+page, []byte(want), 0o644))
	}
	require.Equal(t, want, document(t, page), "run: UPDATE_GOLDEN=1 go test ./e2e -run PagesQuote")
}

// region is what stands between [name] and [end] in an example, without the
// indentation that its lines share.
func region(t *testing.T, path, name string) string {
	t.Helper()
	text := document(t, filepath.Join("examples", path))
	m := regexp.MustCompile(`(?s)\n[^\n]*\[` + name + `\][^\n]*\n(.*?)\n[^\n]*\[end\]`).FindStringSubmatch(text)
	require.NotNil(t, m, "%s has no [%s]", path, name)
	lines := strings.Split(strings.Trim(m[1], "\n"), "\n")
	shared := len(m[1])
	for _, line := range lines {
		if body := strings.TrimLeft(line, " \t"); body != "" {
			shared = min(shared, len(line)-len(body))
		}
	}
	for i := range lines {
		lines[i] = lines[i][min(shared, len(lines[i])):]
	}
	return strings.Join(lines, "\n") + "\n"
}
