package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// Validate checks what a decoder cannot: ranges, and what one field demands of
// another. Every error is an *Error with CodeInvalidRequest that names the
// field and what it must be.
func (r *Request) Validate() error {
	for _, check := range []func(*Request) error{checkMessages, checkTools, checkSchema, checkSampling, checkRouting} {
		if err := check(r); err != nil {
			return err
		}
	}
	return nil
}

func invalid(format string, args ...any) error { return Errorf(CodeInvalidRequest, format, args...) }

func checkMessages(r *Request) error {
	if len(r.Messages) == 0 {
		return invalid("messages must hold at least one message (or send prompt)")
	}
	if len(r.Messages) > MaxMessages {
		return invalid("messages must hold at most %d messages, not %d", MaxMessages, len(r.Messages))
	}
	for i := range r.Messages {
		if err := checkMessage(&r.Messages[i]); err != nil {
			return invalid("messages[%d].%w", i, err)
		}
	}
	return nil
}

func checkMessage(m *Message) error {
	switch m.Role {
	case RoleSystem, RoleUser:
		if len(m.Content) == 0 {
			return fmt.Errorf("content must be a string or a list of parts")
		}
	case RoleAssistant:
		if len(m.Content) == 0 && len(m.ToolCalls) == 0 {
			return fmt.Errorf("content or tool_calls must be given")
		}
	case RoleTool:
		if m.ToolCallID == "" {
			return fmt.Errorf("tool_call_id must name the call that this is the result of")
		}
	default:
		return fmt.Errorf("role must be system, user, assistant or tool")
	}
	if len(m.ToolCalls) > 0 && m.Role != RoleAssistant {
		return fmt.Errorf("tool_calls must be on an assistant message")
	}
	for i := range m.Content {
		if err := checkPart(&m.Content[i]); err != nil {
			return fmt.Errorf("content[%d].%w", i, err)
		}
	}
	return checkCalls(m.ToolCalls)
}

func checkPart(p *Part) error {
	switch p.Type {
	case PartText:
		return nil
	case PartImage:
		if p.Image == nil || p.Image.URL == "" {
			return fmt.Errorf("image_url.url must be an https URL or a data URL")
		}
		return nil
	}
	return fmt.Errorf("type must be text or image_url")
}

func checkCalls(calls []ToolCall) error {
	for i, c := range calls {
		switch {
		case c.ID == "":
			return fmt.Errorf("tool_calls[%d].id must not be empty", i)
		case c.Name == "":
			return fmt.Errorf("tool_calls[%d].function.name must not be empty", i)
		case c.Arguments != "" && first([]byte(c.Arguments)) != '{', c.Arguments != "" && !json.Valid([]byte(c.Arguments)):
			return fmt.Errorf("tool_calls[%d].function.arguments must be a JSON object as text", i)
		}
	}
	return nil
}

var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const functionNameRule = "1 to 64 of A-Z, a-z, 0-9, _ and -"

func checkTools(r *Request) error {
	if len(r.Tools) > MaxTools {
		return invalid("tools must hold at most %d tools, not %d", MaxTools, len(r.Tools))
	}
	names := make(map[string]bool, len(r.Tools))
	for i, t := range r.Tools {
		switch {
		case !functionName.MatchString(t.Name):
			return invalid("tools[%d].function.name must be %s", i, functionNameRule)
		case names[t.Name]:
			return invalid("tools[%d].function.name must be unique", i)
		case t.Parameters != nil && first(t.Parameters) != '{':
			return invalid("tools[%d].function.parameters must be a JSON schema object", i)
		}
		names[t.Name] = true
	}
	return checkToolChoice(r, names)
}

func checkToolChoice(r *Request, names map[string]bool) error {
	if r.ToolChoice == nil {
		return nil
	}
	switch r.ToolChoice.Mode {
	case ToolChoiceAuto, ToolChoiceNone:
		return nil
	case ToolChoiceRequired:
		if len(names) == 0 {
			return invalid("tool_choice must not be required without tools")
		}
		return nil
	case ToolChoiceNamed:
		if !names[r.ToolChoice.Name] {
			return invalid("tool_choice.function.name must be one of the tools")
		}
		return nil
	}
	return invalid(`tool_choice must be auto, none, required or {"type":"function","function":{"name":…}}`)
}

func checkSchema(r *Request) error {
	if r.JSONSchema == nil {
		return nil
	}
	if c := first(r.JSONSchema.Schema); c != '{' && c != 't' && c != 'f' {
		return invalid("json_schema must be a JSON schema: an object or a boolean")
	}
	if n := r.JSONSchema.Name; n != "" && !functionName.MatchString(n) {
		return invalid("json_schema.name must be %s", functionNameRule)
	}
	return nil
}

func checkSampling(r *Request) error {
	switch {
	case r.MaxTokens < 0:
		return invalid("max_tokens must be 1 or more")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return invalid("temperature must be a number from 0 to 2")
	case r.TopP != nil && (*r.TopP <= 0 || *r.TopP > 1):
		return invalid("top_p must be a number above 0 and up to 1")
	case len(r.Stop) > MaxStops:
		return invalid("stop must hold at most %d sequences", MaxStops)
	}
	for i, s := range r.Stop {
		if s == "" {
			return invalid("stop[%d] must not be empty", i)
		}
	}
	return nil
}

const (
	maxTimeoutMS = 24 * 60 * 60 * 1000
	maxLabel     = 256 // bytes of an idempotency key or a data class
)

func checkRouting(r *Request) error {
	switch {
	case r.TimeoutMS < 0 || r.TimeoutMS > maxTimeoutMS:
		return invalid("timeout_ms must be from 1 to %d", maxTimeoutMS)
	case r.Class != "" && r.Class != ClassInteractive && r.Class != ClassBackground && r.Class != ClassStructured:
		return invalid("class must be interactive, background or structured")
	case r.StreamTo != "" && r.StreamTo != StreamToSubject && r.StreamTo != StreamToReply:
		return invalid("stream_to must be subject or reply")
	case r.Resumable && !r.Stream:
		return invalid("resumable must go with stream")
	case len(r.IdempotencyKey) > maxLabel:
		return invalid("idempotency_key must be at most %d bytes", maxLabel)
	case len(r.DataClass) > maxLabel:
		return invalid("data_class must be at most %d bytes", maxLabel)
	}
	return nil
}
