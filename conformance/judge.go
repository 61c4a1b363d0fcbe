package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmbus/llmbus/schemas"
)

// Judge checks single messages against the schemas. It may be used by many
// goroutines at once.
type Judge struct{ compiled map[string]*jsonschema.Schema }

// NewJudge compiles the schemas.
func NewJudge() (*Judge, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, name := range schemas.Names() {
		text, err := schemas.Text(name)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		if err := c.AddResource(schemas.Base+name+".json", doc); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	j := &Judge{compiled: make(map[string]*jsonschema.Schema)}
	for _, name := range schemas.Names() {
		var err error
		if j.compiled[name], err = c.Compile(schemas.Base + name + ".json"); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return j, nil
}

// Check reports where a payload does not fit the schema of that name, without
// quoting it.
func (j *Judge) Check(schema string, payload []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("%s: the payload is not JSON", schema)
	}
	return j.check(schema, value)
}

// CheckHeader is Check for the headers of a message.
func (j *Judge) CheckHeader(schema string, header nats.Header) error {
	value := make(map[string]any, len(header))
	for name, values := range header {
		if len(values) > 0 {
			value[name] = values[0]
		}
	}
	return j.check(schema, value)
}

// CheckText is Check for a payload that is plain text.
func (j *Judge) CheckText(schema string, text string) error { return j.check(schema, text) }

func (j *Judge) check(schema string, value any) error {
	s, ok := j.compiled[schema]
	if !ok {
		return fmt.Errorf("there is no schema %q", schema)
	}
	err := s.Validate(value)
	if wrong, ok := err.(*jsonschema.ValidationError); ok {
		leaf := deepest(wrong)
		return fmt.Errorf("%s: /%s breaks %q of its schema", schema, strings.Join(leaf.InstanceLocation, "/"),
			strings.Join(leaf.ErrorKind.KeywordPath(), "/"))
	}
	return err
}

// deepest is the cause that says most: the one furthest inside the value.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, cause := range e.Causes {
		if d := deepest(cause); best == e || len(d.InstanceLocation) > len(best.InstanceLocation) {
			best = d
		}
	}
	return best
}

// unmarshal reads what Check has passed.
func unmarshal[T any](payload []byte) (v T, err error) {
	if err := json.Unmarshal(payload, &v); err != nil {
		return v, fmt.Errorf("the payload cannot be read as %T", v)
	}
	return v, nil
}
