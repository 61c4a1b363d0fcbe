package arch_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stored are the names of buckets and streams, or how they begin.
var stored = regexp.MustCompile(`^(llm_[a-z]+|LLM_[A-Z_]+)$`)

// TestWorkersMayMakeWhatTheyStore finds the names of buckets and streams in the
// code and demands that worker.conf lets workers make them. Package e2e/fence
// tests the rest of what a new one needs.
func TestWorkersMayMakeWhatTheyStore(t *testing.T) {
	conf, err := os.ReadFile(filepath.Join(root, "deploy", "nats", "worker.conf"))
	require.NoError(t, err)
	found := 0
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			name, err := strconv.Unquote(lit.Value)
			if err != nil || !stored.MatchString(name) {
				return true
			}
			found++
			stream := strings.Replace(name, "llm_", "KV_llm_", 1)
			for _, verb := range []string{"INFO", "CREATE", "UPDATE"} {
				require.Contains(t, string(conf), "$JS.API.STREAM."+verb+"."+stream, "%s stores something in %s: give workers the permission in deploy/nats/worker.conf, then run go test ./e2e/fence", s.path, name)
			}
			return true
		})
	}
	require.Greater(t, found, 10)
}
