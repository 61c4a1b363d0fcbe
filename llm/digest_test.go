package llm_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/llm"
)

// unasked are the fields that do not shape the answer.
var unasked = map[string]bool{
	"ID": true, "Feature": true, "Tenant": true, "Model": true, "TraceParent": true, "Warnings": true,
	"Stream": true, "StreamTo": true, "Resumable": true, "TimeoutMS": true, "Class": true, "IdempotencyKey": true, "NoFailover": true, "Metadata": true, "Job": true,
}

// A new field must be put on one side or the other.
func TestDigestCoversAllThatShapesTheAnswer(t *testing.T) {
	full, empty := reflect.ValueOf(*fullRequest()), new(llm.Request).Digest()
	for i := range full.NumField() {
		name := full.Type().Field(i).Name
		if !full.Type().Field(i).IsExported() {
			continue
		}
		var one llm.Request
		reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
		if unasked[name] {
			require.Equal(t, empty, one.Digest(), name)
			continue
		}
		require.NotEqual(t, empty, one.Digest(), "%s: add it to Digest, or to unasked", name)
	}
}
