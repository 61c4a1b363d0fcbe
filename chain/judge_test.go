package chain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

// doubling is a schema of n steps each of which applies the one before it twice.
func doubling(n int, leaf string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d` + fmt.Sprint(n) + `","$defs":{"d0":` + leaf)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	return b.String() + "}}"
}

func many(n int, each string) string { return strings.TrimSuffix(strings.Repeat(each+",", n), ",") }

// keys are n different members with the value true.
func keys(n int, prefix string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%s%d":true`, prefix, i)
	}
	return b.String()[1:]
}

// TestNoSchemaHoldsAWorkerUp sends what takes forever, or all memory, without
// bounds: each ends in seconds, as a bad request or as an answer that does not
// fit, and the provider's breaker is not touched.
func TestNoSchemaHoldsAWorkerUp(t *testing.T) {
	for name, c := range map[string]struct{ schema, answer string }{
		"references that double":       {doubling(60, `{}`), `{}`},
		"references that double, fail": {doubling(60, `{"type":"string"}`), `{}`},
		"within not":                   {`{"not":` + doubling(60, `{"type":"string"}`) + `}`, `{}`},
		"doubling with the answer": {`{"$ref":"#/$defs/t","$defs":{"t":{"allOf":[{"properties":{"c":{"$ref":"#/$defs/t"}}},{"properties":{"c":{"$ref":"#/$defs/t"}}}]}}}`,
			strings.Repeat(`{"c":`, 200) + "1" + strings.Repeat("}", 200)},
		"an enum of numbers": {`{"items":{"enum":[` + many(4_000, "7.5") + `]}}`, "[" + many(200_000, "1") + "]"},
		"an answer too deep": {`{"items":{"$ref":"#"}}`, strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)},
		"huge exponents":     {`{"items":{"minimum":0}}`, "[" + many(1_000, "1e999999") + "]"},
		"tiny exponents":     {`{"uniqueItems":true}`, "[" + many(1_000, "1e-999999") + "]"},
		"beyond any number":  {`{"minimum":0}`, "1e99999999999"},
		"a bound beyond any": {`{"minimum":1e99999999999}`, "1"},
		"a huge pattern":     {`{"pattern":"` + strings.Repeat("x{1000}", 2_000) + `"}`, `"x"`},
		"many huge patterns": {`{"patternProperties":{` + keys(5_000, "x{900}") + `}}`, `{"x":1}`},
		"too many values":    {`{"properties":{` + many(25_000, `"":{}`) + `}}`, `{}`},
		"a ring":             {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `1`},
		"a dynamic ring":     {`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, `1`},
		"an unknown draft":   {`{"$schema":"http://127.0.0.1:1/draft"}`, `1`},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t, nil, fake.New(fake.Answer(c.answer)))
			req := ask()
			req.JSONSchema = &llm.JSONSchema{Schema: []byte(c.schema)}
			got := complete(t.Context(), rig, req)
			require.NotNil(t, got.err)
			require.Contains(t, []llm.Code{llm.CodeInvalidRequest, llm.CodeInvalidOutput}, got.err.Code)
			require.Less(t, got.took, 20*time.Second)
			require.Equal(t, breaker.Closed, rig.state("a"))
		})
	}
}

func TestLargeHonestAnswersAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		schema, answer string
		fits           bool
	}{
		"different items": {`{"uniqueItems":true}`, sequence(20_000), true},
		"the same twice":  {`{"uniqueItems":true}`, "[" + many(20_000, "1") + "]", false},
		"a long list":     {`{"items":{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^[a-z]+$"}}}}`, "[" + many(5_000, `{"a":"abc"}`) + "]", true},
		"a large number":  {`{"type":"integer"}`, "1e300", true},
		"draft 7":         {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, "{}", true},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t, nil, fake.New(fake.Answer(c.answer)))
			req := ask()
			req.JSONSchema = &llm.JSONSchema{Schema: []byte(c.schema)}
			require.Equal(t, c.fits, complete(t.Context(), rig, req).err == nil)
		})
	}
}

func sequence(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i)
	}
	return "[" + b.String()[1:] + "]"
}

// FuzzSchema demands that no schema and no answer takes long, panics or is
// blamed on the provider.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","required":["a"]}`, `{"a":1}`)
	f.Add(doubling(6, `{"type":"string"}`), `"x"`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}`, `[[[]]]`)
	f.Add(`{"multipleOf":1e-9,"maximum":1e9,"contentEncoding":"base64","contentMediaType":"application/json"}`, `3e8`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","dependencies":{"a":["b"]}}`, `{"a":null}`)
	f.Add(`{"pattern":"(a|b)*c{3,}","unevaluatedItems":false,"propertyNames":{"const":"x"}}`, `"abc"`)
	f.Fuzz(func(t *testing.T, schema, answer string) {
		rig := newRig(t, nil, fake.New(fake.Answer(answer)))
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: []byte(schema)}
		got := complete(t.Context(), rig, req)
		require.Less(t, got.took, 20*time.Second)
		if got.err != nil {
			require.Contains(t, []llm.Code{llm.CodeInvalidRequest, llm.CodeInvalidOutput}, got.err.Code)
		}
	})
}

// TestManySchemasTakeBoundedMemory is about what is kept for later requests.
func TestManySchemasTakeBoundedMemory(t *testing.T) {
	rig := newRig(t, nil, fake.New(fake.Answer("{}")))
	before := heap()
	for range 30 {
		req := ask()
		req.JSONSchema = &llm.JSONSchema{Schema: fmt.Appendf(nil, `{"title":"%d","allOf":[%s]}`, rand.Int(), many(2_400, "{}"))}
		require.Nil(t, complete(t.Context(), rig, req).err)
	}
	require.Less(t, heap()-before, int64(100<<20))
	require.NotNil(t, rig)
}
