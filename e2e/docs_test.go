package e2e

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/kelseyhightower/envconfig"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
	"github.com/llmbus/llmbus/internal/config"
)

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../" + path)
	require.NoError(t, err)
	return string(text)
}

// TestEveryVariableIsDocumented holds docs/operations.md to the settings that a
// worker reads, and to no others.
func TestEveryVariableIsDocumented(t *testing.T) {
	var names bytes.Buffer
	require.NoError(t, envconfig.Usagef("LLMBUS", app.Defaults(""), &names, "{{range .}}{{usage_key .}}\n{{end}}"))
	known := strings.Fields(names.String())
	text := document(t, "docs/operations.md")
	for _, name := range known {
		require.Contains(t, text, "| `"+name+"` |")
	}
	for _, path := range []string{"README.md", "docs/operations.md", "docs/protocol.md", "docs/configuration.md", "docs/security.md", "docs/telemetry.md", "docs/gateway.md"} {
		for _, name := range regexp.MustCompile(`LLMBUS_[A-Z_]*[A-Z]`).FindAllString(document(t, path), -1) {
			require.Contains(t, known, name, path)
		}
	}
}

// TestEveryKeyIsDocumented holds docs/configuration.md to a file that uses every
// key there is.
func TestEveryKeyIsDocumented(t *testing.T) {
	text := document(t, "docs/configuration.md")
	var full map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(document(t, "internal/config/testdata/full.yaml")), &full))
	check := func(section any) {
		for key := range section.(map[string]any) {
			require.Regexp(t, "`"+key+"[`:]", text)
		}
	}
	check(full["breaker"])
	for _, p := range full["providers"].(map[string]any) {
		if p == nil {
			continue
		}
		check(p)
		if models, ok := p.(map[string]any)["models"].(map[string]any); ok {
			for _, m := range models {
				check(m)
			}
		}
	}
	for _, f := range full["features"].(map[string]any) {
		check(f)
		for _, target := range f.(map[string]any)["targets"].([]any) {
			check(target)
		}
	}
}

// TestDocumentedConfigurationsAreGood parses every YAML block that is a whole
// configuration.
func TestDocumentedConfigurationsAreGood(t *testing.T) {
	for _, path := range []string{"README.md", "docs/configuration.md", "docs/operations.md"} {
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(document(t, path), -1) {
			_, _, err := config.Parse(path, []byte(m[1]))
			require.NoError(t, err)
		}
	}
	_, _, err := config.Parse("config.yaml", []byte(document(t, "deploy/compose/config.yaml")))
	require.NoError(t, err)
}

// TestTheMapOfTheCodeIsRight finds every function of the README's map in one of
// the files that its row names.
func TestTheMapOfTheCodeIsRight(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| [^|]* \\| (`[^|]*`) \\| (`[^|]*\\.go`) \\|$").FindAllStringSubmatch(document(t, "README.md"), -1)
	require.NotEmpty(t, rows)
	quoted := regexp.MustCompile("`([^`]*)`")
	for _, row := range rows {
		var code strings.Builder
		for _, file := range quoted.FindAllStringSubmatch(row[2], -1) {
			code.WriteString(document(t, file[1]))
		}
		for _, function := range quoted.FindAllStringSubmatch(row[1], -1) {
			receiver, name, method := strings.Cut(function[1], ".")
			pattern := `(?m)^func ` + receiver + `\(`
			if method {
				pattern = `(?m)^func \(\w+ \*?` + receiver + `\) ` + name + `\(`
			}
			require.Regexp(t, pattern, code.String(), "%s in %s", function[1], row[2])
		}
	}
}

// TestLinksInDocumentsLead follows every relative link of the documentation.
func TestLinksInDocumentsLead(t *testing.T) {
	for _, path := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/adr/README.md", "docs/operations.md",
		"docs/protocol.md", "docs/configuration.md", "docs/security.md", "docs/telemetry.md", "docs/gateway.md"} {
		dir := path[:strings.LastIndexByte(path, '/')+1]
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(document(t, path), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := dir + file
			if file == "" {
				target = path
			}
			_, err := os.Stat("../" + target)
			require.NoError(t, err, "%s links to %s", path, m[1])
			if anchor != "" {
				require.Contains(t, anchors(document(t, target)), anchor, "%s links to %s", path, m[1])
			}
		}
	}
}

// anchors are those that GitHub makes of headings.
func anchors(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		words := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(words, " ", "-"))
	}
	return list
}
