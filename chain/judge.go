package chain

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of judging an answer. Schema and answer both come from outside, and
// together they can ask for more work than a worker has.
const (
	maxJudgedBytes = 4 << 20       // of an answer; a message rarely holds as much
	maxNesting     = 256           // of a schema or an answer
	maxNumber      = 400           // bytes of a number, and its exponent: with 1e999999 ten bytes become a megabyte
	maxPairs       = 50_000_000    // values of the schema times values of the answer
	maxScan        = 1_000_000_000 // size of the patterns times bytes of the answer
	maxJudging     = time.Second   // for one answer; an honest one takes milliseconds
	maxPatterns    = 10_000        // size of all patterns of a schema, with repetitions written out
)

var (
	errTooHard = errors.New("judging takes too much work")
	errNesting = errors.New("nested too deeply, or a number is too long")
)

// budget ends a judgement that takes too long. The library has no bound of its
// own: a schema of forty lines, each of which refers to the one before it twice,
// would never end. It belongs to one compiled schema.
type budget struct{ end time.Time }

// vocabulary has the library report every schema object that it has applied.
func (b *budget) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL:     "request:budget",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return b, nil },
	}
}

// Validate looks at the clock; past the end it unwinds the library.
func (b *budget) Validate(*jsonschema.ValidatorContext, any) {
	if time.Now().After(b.end) {
		panic(errTooHard)
	}
}

// measure counts the values in JSON text, and refuses what decoding or
// comparing could choke on before either begins. text need not be JSON.
func measure(text string) (values int, err error) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == ',':
			values++
		case c == '{' || c == '[':
			values++
			if depth++; depth > maxNesting {
				return 0, errNesting
			}
		case c == '}' || c == ']':
			depth--
		case '0' <= c && c <= '9':
			number := leadingNumber(text[i:])
			if !comparable(number) {
				return 0, errNesting
			}
			i += len(number) - 1
		}
	}
	return values + 1, nil
}

func leadingNumber(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) })
	if end < 0 {
		return text
	}
	return text[:end]
}

// comparable reports whether a number can be written out in few digits.
func comparable(number string) bool {
	if len(number) > maxNumber {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && max(exponent, -exponent) <= maxNumber
}

// patterns compiles the regular expressions of one schema within one bound: a
// repetition of a few bytes stands for a program of a thousand steps.
type patterns struct{ size int }

func (p *patterns) compile(expr string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, errSchemaSyntax
	}
	if p.size += steps(tree); p.size > maxPatterns {
		return nil, errTooHard
	}
	return regexp.Compile(expr)
}

// steps is about the size of the compiled expression. The parser bounds nested
// repetitions, so that it cannot overflow.
func steps(re *syntax.Regexp) int {
	sum := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		sum += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		sum *= max(1, re.Min, re.Max)
	}
	return sum
}
