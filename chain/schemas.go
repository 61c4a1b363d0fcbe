package chain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchemaBytes  = 256 << 10 // of one schema
	maxSchemaValues = 5_000     // in one schema; compiling takes time by the square of their number, and each takes a kilobyte
	maxValuesKept   = 50_000    // in all compiled schemas
	schemaNoAddress = "request:schema"
)

var (
	errSchemaSize   = errors.New("larger than 256 KiB or 5000 values")
	errSchemaSyntax = errors.New("not a valid JSON schema (draft 2020-12) without references to other documents")
	errSchemaHard   = errors.New("nested too deeply, or with numbers or patterns that are too long")
)

// schemas compiles JSON schemas and keeps the compiled form, since callers of a
// feature send the same few again and again.
type schemas struct {
	compiling sync.Mutex // one at a time: a large schema takes memory while it is compiled

	mu     sync.Mutex
	kept   map[[sha256.Size]byte]*compiled
	values int // in kept
}

// compiled is a schema that one goroutine at a time may use.
type compiled struct {
	schema   *jsonschema.Schema
	budget   budget
	patterns patterns
	values   int
	using    sync.Mutex // held while it judges, never over I/O
}

func newSchemas() *schemas {
	return &schemas{kept: make(map[[sha256.Size]byte]*compiled)}
}

// check reports whether a schema can be used.
func (s *schemas) check(raw []byte) error {
	_, err := s.find(raw)
	return err
}

// judge reports whether an answer is one JSON value that fits the schema.
func (s *schemas) judge(raw []byte, text string) error {
	c, err := s.find(raw)
	if err != nil {
		return errSchema // check has passed it before
	}
	if !c.using.TryLock() { // whoever holds it may need it long: an own one is made in a moment
		if c, err = s.compile(raw); err != nil {
			return errSchema
		}
		c.using.Lock()
	}
	defer c.using.Unlock()
	return c.judge(text)
}

// find returns the compiled schema. A reference to another document is an
// error: nothing is ever fetched.
func (s *schemas) find(raw []byte) (*compiled, error) {
	if len(raw) > maxSchemaBytes {
		return nil, errSchemaSize
	}
	key := sha256.Sum256(raw)
	s.mu.Lock()
	kept := s.kept[key]
	s.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	c, err := s.compile(raw)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values += c.values; s.values > maxValuesKept {
		clear(s.kept)
		s.values = c.values
	}
	s.kept[key] = c
	return c, nil
}

func (s *schemas) compile(raw []byte) (*compiled, error) {
	values, err := measure(string(raw))
	switch {
	case err != nil:
		return nil, errSchemaHard
	case values > maxSchemaValues:
		return nil, errSchemaSize
	}
	s.compiling.Lock()
	defer s.compiling.Unlock()
	c := &compiled{values: values}
	return c, c.compile(raw)
}

func (c *compiled) compile(raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return errSchemaSyntax
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(c.patterns.compile)
	compiler.RegisterVocabulary(c.budget.vocabulary())
	compiler.AssertVocabs()
	if err := compiler.AddResource(schemaNoAddress, doc); err != nil {
		return errSchemaSyntax
	}
	c.budget.end = time.Now().Add(maxJudging)
	c.schema, err = compiler.Compile(schemaNoAddress)
	switch {
	case c.patterns.size > maxPatterns:
		return errSchemaHard
	case err != nil:
		return errSchemaSyntax // the library's text quotes the schema
	}
	return nil
}

func (c *compiled) judge(text string) (err error) {
	values, err := measure(text)
	switch {
	case err != nil:
		return errNotJSON
	case len(text) > maxJudgedBytes, values*c.values > maxPairs, len(text)*c.patterns.size > maxScan:
		return errTooHard
	}
	value, err := decodeOne(text)
	if err != nil {
		return errNotJSON
	}
	defer func() {
		if recover() != nil { // out of budget, or a fault of the library
			err = errTooHard
		}
	}()
	c.budget.end = time.Now().Add(maxJudging)
	if c.schema.Validate(value) != nil {
		return errSchema // the library's text quotes the answer
	}
	return nil
}

// noLoader refuses every reference to another document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errSchemaSyntax }
