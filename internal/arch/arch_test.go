package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/llmbus/llmbus/"
	root   = "../.."
)

// levels is the order of the house: a package imports only from lower levels,
// or from the same level where siblings lists it.
var levels = map[string]int{
	"internal/scan": -1,
	"llm":           0, "subjects": 0, "schemas": 0,
	"kv": 1, "stream": 1, "replay": 1, "provider": 1,
	"provider/wire/http1": 1, "provider/wire": 2, "breaker": 2,
	"provider/openai": 3, "provider/anthropic": 3, "provider/ollama": 3, "provider/gemini": 3, "provider/echo": 3, "provider/fake": 3,
	"provider/providertest": 3,
	"chain":                 4,
	"bus":                   5, "agents": 5, "client": 5, "jobs": 5, "once": 5, "usage": 5, "limits": 5, "audit": 5, "telemetry": 5,
	"internal/config": 6,
	"gateway":         6, "internal/fleet": 6, "internal/page": 6,
	"conformance":  6,
	"internal/app": 7,
	"cmd/broker":   8,

	// helpers of tests and tools, which the product does not import
	"internal/natstest": 3, "internal/vectors": 2, "internal/sim": 3, "internal/sim/simtest": 4, "internal/arch": 8, "e2e": 9, "e2e/fence": 9,
}

// narrow packages may import less than their level allows.
var narrow = map[string][]string{
	"internal/scan": {}, "llm": {"internal/scan"}, "subjects": {}, "provider": {"llm"}, "provider/wire/http1": {}, "stream": {"llm", "subjects"}, "replay": {"subjects"},
	"bus": {"llm", "subjects", "stream", "schemas"}, "client": {"llm", "subjects", "stream"},
	"jobs":           {"llm", "subjects", "kv"},
	"chain":          {"llm", "provider", "breaker", "kv"},
	"once":           {"llm", "subjects", "stream", "kv"},
	"internal/fleet": {"llm", "subjects", "kv", "breaker", "chain", "usage"},
	"internal/page":  {"kv", "jobs"},
	"usage":          {"llm", "subjects", "kv", "chain"},
	"limits":         {"llm", "subjects", "kv", "chain"},
	"audit":          {"subjects", "kv", "chain"},

	"gateway": {"llm", "subjects", "client", "internal/scan"},

	"agents": {"llm", "subjects", "stream"}, "schemas": {}, "conformance": {"llm", "subjects", "schemas"},
	"telemetry": {"llm", "chain"},
}

// foreign says who alone may import a library.
var foreign = map[string]*regexp.Regexp{
	"github.com/nats-io/": regexp.MustCompile(`^(kv|audit|stream|replay|breaker|limits|bus|jobs|client|once|agents|gateway|conformance|internal/(app|config|fleet|page|natstest)|cmd/broker|e2e)$`),
	"net/http":            regexp.MustCompile(`^(provider/.*|gateway|telemetry|internal/(app|page|sim|vectors)|cmd/broker|e2e)$`),

	"go.opentelemetry.io/":   regexp.MustCompile(`^(telemetry|internal/app)$`),
	"github.com/prometheus/": regexp.MustCompile(`^telemetry$`),
}

const (
	maxFile     = 400 // lines
	maxTestFile = 800
	maxFunction = 60
)

type source struct {
	path, dir string
	test      bool
	file      *ast.File
	lines     func(ast.Node) int
	length    int
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "examples" || name == "sdktest" || name == "bench") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return skipModule(path, d)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		list = append(list, source{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(name, "_test.go"), file: file,
			lines:  func(n ast.Node) int { return set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1 },
			length: strings.Count(string(text), "\n")})
		return nil
	}))
	return list
}

// skipModule leaves modules of their own out, such as checks that need libraries
// which the program does not.
func skipModule(path string, d fs.DirEntry) error {
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && d.IsDir() && path != root {
		return filepath.SkipDir
	}
	return nil
}

func TestImportsPointDownwards(t *testing.T) {
	for _, s := range sources(t) {
		level, known := levels[s.dir]
		require.True(t, known, "%s: give the package a level here", s.dir)
		if s.test {
			continue
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			for library, who := range foreign {
				if strings.HasPrefix(path, library) {
					require.Regexp(t, who, s.dir, "%s imports %s", s.path, path)
				}
			}
			own, inside := strings.CutPrefix(path, module)
			if !inside {
				continue
			}
			require.Less(t, levels[own], level, "%s imports %s, which is not below it", s.path, own)
			if allowed, ok := narrow[s.dir]; ok {
				require.Contains(t, allowed, own, "%s imports %s", s.path, own)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		limit := maxFile
		if s.test {
			limit = maxTestFile
		}
		require.LessOrEqual(t, s.length, limit, "%s has too many lines: split it by behaviour", s.path)
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test {
				continue
			}
			require.LessOrEqual(t, s.lines(f), maxFunction, "%s: %s is too long", s.path, f.Name.Name)
			require.False(t, f.Recv == nil && f.Name.Name == "init", "%s: no init", s.path)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.dir] = documented[s.dir] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		require.True(t, ok, "%s: write a doc.go", dir)
	}
}

// sleeps and skips hide what a test should wait for or say.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok {
					require.False(t, x.Name == "time" && sel.Sel.Name == "Sleep", "%s sleeps", s.path)
					require.False(t, x.Name == "t" && strings.HasPrefix(sel.Sel.Name, "Skip"), "%s skips", s.path)
				}
			}
			return true
		})
	}
}

// subjectLiteral is a subject spelt where it should be named.
var subjectLiteral = regexp.MustCompile(`^"(llm\.(complete|stream|replay|resume|cancel|follow|limits|failures|events|kv|jobs|results|dead|audit)\.|Llm-|Nats-Service-)`)

func TestSubjectsAreSpeltOnce(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.dir == "subjects" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				require.NotRegexp(t, subjectLiteral, lit.Value, "%s spells a subject or header: use package subjects", s.path)
			}
			return true
		})
	}
}
