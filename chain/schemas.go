package chain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchemaBytes  = 256 << 10 // of one schema
	maxSchemasKept  = 256       // compiled ones
	schemaNoAddress = "request:schema"
)

var (
	errSchemaSize   = errors.New("larger than 256 KiB")
	errSchemaSyntax = errors.New("not a valid JSON schema (draft 2020-12) without references to other documents")
)

// schemas compiles JSON schemas and keeps the compiled form, since callers of a
// feature send the same few again and again.
type schemas struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*jsonschema.Schema
}

func newSchemas() *schemas {
	return &schemas{kept: make(map[[sha256.Size]byte]*jsonschema.Schema)}
}

// compile returns the compiled schema. A reference to another document is an
// error: nothing is ever fetched.
func (s *schemas) compile(raw []byte) (*jsonschema.Schema, error) {
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
	compiled, err := compileSchema(raw)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxSchemasKept {
		clear(s.kept)
	}
	s.kept[key] = compiled
	return compiled, nil
}

func compileSchema(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errSchemaSyntax
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaNoAddress, doc); err != nil {
		return nil, errSchemaSyntax
	}
	compiled, err := c.Compile(schemaNoAddress)
	if err != nil {
		return nil, errSchemaSyntax // the library's text quotes the schema
	}
	return compiled, nil
}

// noLoader refuses every reference to another document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errSchemaSyntax }
