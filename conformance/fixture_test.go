package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/breaker"
	"github.com/llmbus/llmbus/conformance"
	"github.com/llmbus/llmbus/llm"
)

// asSent checks a fixture in the form in which NATS carries it.
func asSent(j *conformance.Judge, schema string, f conformance.Fixture) error {
	switch schema {
	case "request-headers", "reply-headers", "job-headers", "resume-headers":
		var fields map[string]string
		if err := json.Unmarshal(f.Payload, &fields); err != nil {
			return err
		}
		header := nats.Header{}
		for name, value := range fields {
			header[name] = []string{value}
		}
		return j.CheckHeader(schema, header)
	case "flag":
		var text string
		if err := json.Unmarshal(f.Payload, &text); err != nil {
			return err
		}
		return j.CheckText(schema, text)
	}
	return j.Check(schema, f.Bytes())
}

func TestSchemasTellGoodFixturesFromBad(t *testing.T) {
	judge, err := conformance.NewJudge()
	require.NoError(t, err)
	for _, schema := range conformance.FixtureFiles() {
		fixtures, err := conformance.Fixtures(schema)
		require.NoError(t, err)
		for _, f := range fixtures {
			err := asSent(judge, schema, f)
			require.Equal(t, f.Valid || f.SchemaAccepts, err == nil, "%s: %s: %v", schema, f.Name, err)
		}
	}
}

// TestOurDecodersAgreeWithTheFixtures holds what workers and clients of this
// repository read to what the fixtures say.
func TestOurDecodersAgreeWithTheFixtures(t *testing.T) {
	for schema, decode := range map[string]func([]byte) error{
		"request": func(data []byte) error { _, err := llm.DecodeRequest(data); return err },
		"frame":   func(data []byte) error { _, err := llm.DecodeFrame(data); return err },
		"reply": func(data []byte) error {
			_, err := llm.DecodeReply(data)
			if _, isError := err.(*llm.Error); isError {
				return nil
			}
			return err
		},
		"breaker": func(data []byte) error { _, err := breaker.DecodeRecord(data); return err },
	} {
		fixtures, err := conformance.Fixtures(schema)
		require.NoError(t, err)
		for _, f := range fixtures {
			err := decode(f.Bytes())
			require.Equal(t, f.Valid || f.DecoderAccepts, err == nil, "%s: %s: %v", schema, f.Name, err)
			if schema == "request" && !f.Valid {
				require.ErrorContains(t, err, f.Names, f.Name)
			}
		}
	}
}

func TestAJudgementQuotesNothing(t *testing.T) {
	judge, err := conformance.NewJudge()
	require.NoError(t, err)
	err = judge.Check("reply", []byte(`{"id":"9f","content":{"secret":"s3cret"},"served_by":"model","provider":"p"}`))
	require.ErrorContains(t, err, "reply: /content breaks")
	require.NotContains(t, err.Error(), "s3cret")
	require.ErrorContains(t, judge.Check("reply", []byte("s3cret")), "reply: the payload is not JSON")
	require.ErrorContains(t, judge.Check("letter", nil), "the payload is not JSON")
	require.ErrorContains(t, judge.CheckText("letter", ""), `there is no schema "letter"`)
}

// TestGoldenFilesFitTheirSchemas holds what docs/protocol.md quotes to the
// schemas.
func TestGoldenFilesFitTheirSchemas(t *testing.T) {
	judge, err := conformance.NewJudge()
	require.NoError(t, err)
	paths, err := filepath.Glob("../llm/testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		schema, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".json"), "_")
		require.NoError(t, judge.Check(schema, text), path)
	}
}
