package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmbus/llmbus/internal/scan"
)

// DecodeRequest reads the payload of a request and checks it whole. Every error
// is an *Error with CodeInvalidRequest that names the field and says what it
// must be. Unknown fields are dropped and named in Warnings. The Request shares
// the memory of data, which must not change any more.
func DecodeRequest(data []byte) (*Request, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	fields := make([]member, 0, 8)
	isObject, _ := scan.Members(data, func(key, value []byte) error {
		fields = append(fields, member{key, value})
		return nil
	})
	if !isObject {
		return nil, Errorf(CodeInvalidRequest, "the payload must be a JSON object with messages or prompt, not %s", kindOf(data))
	}
	req := new(Request)
	var prompt *string
	var unknown []string
	slices.SortStableFunc(fields, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	for i, f := range fields {
		if i+1 < len(fields) && bytes.Equal(fields[i+1].name, f.name) {
			continue // the last of several counts
		}
		known, err := req.decodeField(f.name, f.value, &prompt)
		if err != nil {
			return nil, err
		}
		if !known {
			unknown = append(unknown, string(f.name))
		}
	}
	req.Warnings = warnUnknown(unknown)
	if prompt != nil {
		if len(req.Messages) > 0 {
			return nil, Errorf(CodeInvalidRequest, "prompt cannot go with messages; send one of them")
		}
		req.Messages = []Message{{Role: RoleUser, Content: Text(*prompt)}}
	}
	return req, req.Validate()
}

// member is a field of the payload.
type member struct{ name, value []byte }

// decodeField decodes one field into the request, or into prompt.
func (r *Request) decodeField(name, value []byte, prompt **string) (known bool, err error) {
	if string(name) == "messages" && string(value) != "null" {
		canonical := false
		if r.Messages, canonical, err = decodeMessages(value); err != nil {
			return true, Errorf(CodeInvalidRequest, "%s", err.Error())
		}
		if canonical {
			r.messagesJSON = value
		}
		return true, nil
	}
	target, known := r.field(name, prompt)
	if !known || string(value) == "null" {
		return known || string(value) == "null", nil
	}
	if err := json.Unmarshal(value, target); err != nil {
		return true, fieldError(string(name), err)
	}
	switch string(name) {
	case "tools":
		for i := range r.Tools {
			r.Tools[i].Parameters = madeWhole(r.Tools[i].Parameters)
		}
	case "json_schema":
		r.JSONSchema.Schema = madeWhole(r.JSONSchema.Schema)
	}
	if string(value) == "0" && (string(name) == "max_tokens" || string(name) == "timeout_ms") {
		return true, Errorf(CodeInvalidRequest, "%s must be 1 or more; leave it out for the default", name)
	}
	return true, nil
}

// maxWarnings bounds how many unknown fields are named, since their number is up
// to the caller.
const maxWarnings = 16

func warnUnknown(names []string) []string {
	var warnings []string
	for i, name := range names {
		if i == maxWarnings {
			return append(warnings, fmt.Sprintf("%d more unknown fields were ignored", len(names)-i))
		}
		warnings = append(warnings, fmt.Sprintf("unknown field %q was ignored", clip(name)))
	}
	return warnings
}

// field returns where the value of a wire field is decoded to.
func (r *Request) field(name []byte, prompt **string) (target any, known bool) {
	switch string(name) {
	case "messages":
		return &r.Messages, true
	case "prompt":
		return prompt, true
	case "tools":
		return &r.Tools, true
	case "tool_choice":
		return &r.ToolChoice, true
	case "parallel_tool_calls":
		return &r.ParallelToolCalls, true
	case "json_schema":
		return &r.JSONSchema, true
	case "max_tokens":
		return &r.MaxTokens, true
	case "temperature":
		return &r.Temperature, true
	case "top_p":
		return &r.TopP, true
	case "stop":
		return (*stops)(&r.Stop), true
	case "seed":
		return &r.Seed, true
	case "stream":
		return &r.Stream, true
	case "stream_to":
		return &r.StreamTo, true
	case "resumable":
		return &r.Resumable, true
	case "timeout_ms":
		return &r.TimeoutMS, true
	case "class":
		return &r.Class, true
	case "data_class":
		return &r.DataClass, true
	case "idempotency_key":
		return &r.IdempotencyKey, true
	case "no_failover":
		return &r.NoFailover, true
	case "metadata":
		return &r.Metadata, true
	}
	return nil, false
}

// stops takes one stop sequence or a list of them.
type stops []string

func (s *stops) UnmarshalJSON(data []byte) error {
	if first(data) == '"' {
		*s = make(stops, 1)
		return json.Unmarshal(data, &(*s)[0])
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// fieldError turns what encoding/json says into the field's path and its rule,
// without quoting the value.
func fieldError(name string, err error) *Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path := name
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		got, _, _ := strings.Cut(wrong.Value, " ") // "number 1.5" holds the value
		return Errorf(CodeInvalidRequest, "%s must be %s, not %s", path, kindName(wrong), got)
	}
	return Errorf(CodeInvalidRequest, "%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
}

func kindName(wrong *json.UnmarshalTypeError) string {
	switch kind := wrong.Type.Kind().String(); kind {
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	default:
		return "an object"
	}
}

// checkJSON checks syntax and nesting before anything is decoded.
func checkJSON(data []byte) error {
	if len(data) == 0 {
		return Errorf(CodeInvalidRequest, "the payload is empty; send a JSON object with messages or prompt")
	}
	if !utf8.Valid(data) { // a provider would read other text than was checked here
		return Errorf(CodeInvalidRequest, "the payload is not valid UTF-8")
	}
	if err := scan.Check(data); err != nil {
		return Errorf(CodeInvalidRequest, "the payload is %w", err)
	}
	return nil
}

// clip bounds a name that came from outside before it goes into a message.
func clip(name string) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return strings.ToValidUTF8(name, "?")
}
