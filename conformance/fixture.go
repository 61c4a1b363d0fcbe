package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed fixtures/*.json
var files embed.FS

// Fixture is one message of the wire, good or bad. Fixtures of the schema
// <name> are in fixtures/<name>.json.
type Fixture struct {
	Name    string          `json:"name"`
	Valid   bool            `json:"valid"`
	Payload json.RawMessage `json:"payload"`
	Text    *string         `json:"text"`   // the payload, where it is no JSON
	Base64  []byte          `json:"base64"` // the payload, where it is no text
	Names   string          `json:"names"`  // what a worker's refusal must name

	SchemaAccepts  bool `json:"schema_accepts"`  // bad in a way that a schema cannot say
	DecoderAccepts bool `json:"decoder_accepts"` // bad, and a generous reader takes it
}

// Bytes are the payload.
func (f *Fixture) Bytes() []byte {
	switch {
	case f.Base64 != nil:
		return f.Base64
	case f.Text != nil:
		return []byte(*f.Text)
	}
	return f.Payload
}

// Fixtures reads those of one schema.
func Fixtures(schema string) ([]Fixture, error) { return load[Fixture](schema) }

// FixtureFiles names the schemas that have fixtures.
func FixtureFiles() []string {
	paths, _ := fs.Glob(files, "fixtures/*.json") // the pattern is good
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(path.Base(p), ".json")
	}
	return slices.DeleteFunc(paths, func(name string) bool { return name == exchangesFile || name == scriptsFile })
}

func load[T any](name string) ([]T, error) {
	text, err := files.ReadFile("fixtures/" + name + ".json")
	if err != nil {
		return nil, err
	}
	var list []T
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("fixtures/%s.json: %w", name, err)
	}
	return list, nil
}
