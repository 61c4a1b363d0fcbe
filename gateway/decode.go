package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/internal/scan"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/subjects"
)

// chat is a chat completion that was asked for.
type chat struct {
	req       *llm.Request
	withUsage bool // stream_options.include_usage
}

// decodeChat reads the body of a chat completion. It is rewritten as a payload of
// the bus and read by the bus's own decoder, so that both say the same of what is
// wrong. Every error is an *llm.Error that names the field.
func decodeChat(body []byte) (*chat, error) {
	if err := scan.Check(body); err != nil {
		return nil, invalid("the body is %w", err)
	}
	var o options
	payload, err := o.rewrite(body)
	if err != nil {
		return nil, err
	}
	if !subjects.ValidFeature(o.model) {
		return nil, noModel(o.model)
	}
	req, err := llm.DecodeRequest(payload)
	if err != nil {
		return nil, o.inOurWords(err)
	}
	if o.streamOptions && !req.Stream {
		return nil, invalid("stream_options must go with stream")
	}
	req.Feature, req.Warnings = o.model, append(o.warnings(), req.Warnings...)
	return &chat{req, o.withUsage}, nil
}

func invalid(format string, args ...any) error {
	return llm.Errorf(llm.CodeInvalidRequest, format, args...)
}

// options are what a body says beside what the bus takes as it is.
type options struct {
	model         string
	maxTokens     string // the field that set it
	streamOptions bool
	withUsage     bool
	unknown       []string
}

// rewrite returns the body as a payload of the bus.
func (o *options) rewrite(body []byte) ([]byte, error) {
	out := append(make([]byte, 0, len(body)+64), '{')
	isObject, err := scan.Members(body, func(key, value []byte) error {
		if string(value) == "null" {
			return nil
		}
		switch name := string(key); fields[name] {
		case fieldPassed:
			if name == "messages" {
				value = systemForDeveloper(value)
			}
			out = appendMember(out, name, value)
		case fieldOwn:
			var err error
			out, err = o.own(out, name, value)
			return err
		case fieldRefused:
			return invalid("%s", remedies[name])
		case fieldUnknown:
			o.unknown = append(o.unknown, name)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !isObject:
		return nil, invalid("the body must be a JSON object with model and messages")
	case o.model == "":
		return nil, invalid("model must be the name of a feature; GET /v1/models lists them")
	}
	return append(out, '}'), nil
}

func appendMember(out []byte, name string, value []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, '"')
	out = append(out, name...)
	out = append(out, '"', ':')
	return append(out, value...)
}

// own reads or translates a field.
func (o *options) own(out []byte, name string, value []byte) ([]byte, error) {
	switch name {
	case "model":
		return out, decode(name, "a string", value, &o.model)
	case "max_tokens", "max_completion_tokens":
		if o.maxTokens != "" {
			return nil, invalid("max_tokens cannot go with max_completion_tokens; send the second alone")
		}
		o.maxTokens = name
		return appendMember(out, "max_tokens", value), nil
	case "n":
		if string(value) != "1" {
			return nil, invalid("n must be 1; send as many requests as you want answers")
		}
	case "modalities":
		var kinds []string
		if err := decode(name, "a list of strings", value, &kinds); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(kinds, func(kind string) bool { return kind != "text" }) {
			return nil, invalid(`modalities must be ["text"]`)
		}
	case "stream_options":
		o.streamOptions = true
		var s struct {
			IncludeUsage bool `json:"include_usage"`
		}
		err := decode(name, "an object", value, &s)
		o.withUsage = s.IncludeUsage
		return out, err
	case "response_format":
		schema, err := schemaOf(value)
		if err != nil || schema == nil {
			return out, err
		}
		return appendMember(out, "json_schema", schema), nil
	}
	return out, nil
}

func decode(name, what string, value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return invalid("%s must be %s", name, what)
	}
	return nil
}

// anyObject is the schema of json_object.
const anyObject = `{"name":"answer","schema":{"type":"object"}}`

// schemaOf is what response_format says of the answer; nil for plain text.
func schemaOf(value []byte) ([]byte, error) {
	var format struct {
		Type       string          `json:"type"`
		JSONSchema json.RawMessage `json:"json_schema"`
	}
	if err := decode("response_format", "an object with type and strings as the API has them", value, &format); err != nil {
		return nil, err
	}
	switch format.Type {
	case "text":
		return nil, nil
	case "json_object":
		return []byte(anyObject), nil
	case "json_schema":
		var named struct {
			Schema json.RawMessage `json:"schema"`
		}
		if err := decode("response_format.json_schema", "an object", format.JSONSchema, &named); err != nil || len(named.Schema) == 0 || named.Schema[0] == '"' {
			return nil, invalid("response_format.json_schema.schema must be a JSON schema")
		}
		return format.JSONSchema, nil
	}
	return nil, invalid("response_format.type must be text, json_object or json_schema")
}

// systemForDeveloper calls developer messages by their older name, which every
// provider knows.
func systemForDeveloper(messages []byte) []byte {
	if !bytes.Contains(messages, []byte(`"developer"`)) {
		return messages
	}
	out := []byte{'['}
	isList, _ := scan.Elements(messages, func(i int, message []byte) error {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendSystem(out, message)
		return nil
	})
	if !isList {
		return messages
	}
	return append(out, ']')
}

func appendSystem(out, message []byte) []byte {
	renamed := []byte{'{'}
	isObject, _ := scan.Members(message, func(key, value []byte) error {
		if string(key) == "role" && string(value) == `"developer"` {
			value = []byte(`"system"`)
		}
		if len(renamed) > 1 {
			renamed = append(renamed, ',')
		}
		renamed = llm.AppendString(renamed, string(key))
		renamed = append(append(renamed, ':'), value...)
		return nil
	})
	if !isObject {
		return append(out, message...)
	}
	return append(append(out, renamed...), '}')
}

// inOurWords names a field as the caller did.
func (o *options) inOurWords(err error) error {
	e, ok := err.(*llm.Error) //nolint:errorlint // it comes straight from the decoder
	if !ok {
		return err
	}
	message := e.Message
	if o.maxTokens != "" {
		message = strings.Replace(message, "max_tokens", o.maxTokens, 1)
	}
	if rest, cut := strings.CutPrefix(message, "json_schema"); cut {
		message = "response_format.json_schema" + rest
	}
	message = strings.Replace(message, "the payload", "the body", 1)
	return invalid("%s", strings.TrimSuffix(message, " (or send prompt)"))
}

// maxWarnings bounds how many fields are named, since their number is up to the
// caller.
const maxWarnings = 16

func (o *options) warnings() []string {
	var list []string
	for i, name := range o.unknown {
		if i == maxWarnings {
			return append(list, fmt.Sprintf("%d more fields have no effect here", len(o.unknown)-i))
		}
		list = append(list, fmt.Sprintf("field %.64q has no effect here", name))
	}
	return list
}
