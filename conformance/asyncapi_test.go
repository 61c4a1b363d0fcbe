package conformance_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/bus"
	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/schemas"
)

// TestTheAsyncAPIDocumentIsCurrent compares docs/asyncapi.json with what is
// generated. UPDATE_GOLDEN=1 writes it anew.
func TestTheAsyncAPIDocumentIsCurrent(t *testing.T) {
	const path = "../docs/asyncapi.json"
	text, err := conformance.AsyncAPI(conformance.Version)
	require.NoError(t, err)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(have), string(text), "run: UPDATE_GOLDEN=1 go test ./conformance -run AsyncAPI")
}

// TestSchemasNameTheFieldsOfOurTypes finds a field that was added to a wire type
// and not to its schema, and the other way round.
func TestSchemasNameTheFieldsOfOurTypes(t *testing.T) {
	for schema, value := range map[string]any{
		"request": llm.Request{}, "message": llm.Message{}, "response": llm.Response{}, "error": llm.Error{}, "attempt": llm.Attempt{},
		"usage": llm.Usage{}, "job": llm.Job{}, "frame": llm.Frame{}, "dead-letter": jobs.DeadLetter{}, "status": bus.Report{}, "breaker": breaker.Record{},
	} {
		want := properties(t, schema)
		if schema == "request" {
			delete(want, "prompt") // read into messages
		}
		have := map[string]bool{}
		typ := reflect.TypeOf(value)
		for field := range typ.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
				have[name] = true
			}
		}
		require.Equal(t, want, have, schema)
	}
}

// TestTheSchemaOfEventsNamesTheFieldsOfRequests does the same for events, which
// come of several types.
func TestTheSchemaOfEventsNamesTheFieldsOfRequests(t *testing.T) {
	known := properties(t, "event")
	for field := range reflect.TypeFor[chain.Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		require.True(t, known[name], name)
	}
}

func properties(t *testing.T, name string) map[string]bool {
	t.Helper()
	text, err := schemas.Text(name)
	require.NoError(t, err)
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	names := map[string]bool{}
	for field := range schema.Properties {
		names[field] = true
	}
	return names
}
