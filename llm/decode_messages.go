package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/llmbus/llmbus/internal/scan"
)

// decodeMessages reads the messages, whose syntax was checked before. canonical
// is false if they hold anything that a Message does not, so that their text
// must not be passed on as it is.
func decodeMessages(raw []byte) (messages []Message, canonical bool, err error) {
	canonical = true
	messages = make([]Message, 0, 2) // a system's and a user's
	isList, err := scan.Elements(raw, func(i int, value []byte) error {
		m, exact, err := decodeMessage(value)
		if err != nil {
			return fmt.Errorf("messages[%d]%w", i, err)
		}
		canonical = canonical && exact
		messages = append(messages, m)
		return nil
	})
	if err == nil && !isList {
		err = fmt.Errorf("messages must be a list, not %s", kindOf(raw))
	}
	return messages, canonical, err
}

func decodeMessage(raw []byte) (m Message, canonical bool, err error) {
	canonical = true
	var seen [5]bool // a key that comes twice is a trap for whoever reads the text again
	once := func(i int) {
		canonical = canonical && !seen[i]
		seen[i] = true
	}
	isObject, err := scan.Members(raw, func(key, value []byte) error {
		if string(value) == "null" {
			canonical = false
			return nil
		}
		canonical = canonical && (value[0] != '"' || whole(value))
		switch string(key) {
		case "role":
			once(0)
			return decodeRole(value, &m.Role)
		case "content":
			once(1)
			if value[0] == '"' {
				m.Content = Text(scan.Share(value))
				return nil
			}
			canonical = false // parts may hold more than a Part does
			return dotted(string(key), json.Unmarshal(value, &m.Content))
		case "name":
			once(2)
			return decodeString(string(key), value, &m.Name)
		case "tool_call_id":
			once(3)
			return decodeString(string(key), value, &m.ToolCallID)
		case "tool_calls":
			once(4)
			canonical = false
			return dotted(string(key), json.Unmarshal(value, &m.ToolCalls))
		}
		canonical = false
		return nil
	})
	if err == nil && !isObject {
		err = fmt.Errorf(" must be an object, not %s", kindOf(raw))
	}
	return m, canonical, err
}

// whole reports whether a string, which was checked before, surely has no half of
// a surrogate pair in it. JSON allows that and servers of models fail on it; the
// text that is decoded has U+FFFD in its place.
func whole(value []byte) bool {
	return !hasSurrogate(value) || !bytes.ContainsRune(scan.Bare(value), utf8.RuneError)
}

func hasSurrogate(value []byte) bool {
	return bytes.Contains(value, []byte(`\ud`)) || bytes.Contains(value, []byte(`\uD`))
}

// madeWhole is a value that providers get as it is, written anew where a half
// of a surrogate pair may be in it.
func madeWhole(value json.RawMessage) json.RawMessage {
	if !hasSurrogate(value) {
		return value
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return value // its syntax was checked before
	}
	anew, err := json.Marshal(v)
	if err != nil {
		return value
	}
	return anew
}

func decodeString(key string, value []byte, into *string) error {
	if value[0] != '"' {
		return fmt.Errorf(".%s must be a string, not %s", key, kindOf(value))
	}
	*into = scan.Unquote(value)
	return nil
}

// decodeRole is decodeString without a copy of the roles that there are.
func decodeRole(value []byte, into *Role) error {
	for _, role := range []Role{RoleUser, RoleAssistant, RoleSystem, RoleTool} {
		if value[0] == '"' && string(value[1:len(value)-1]) == string(role) {
			*into = role
			return nil
		}
	}
	return decodeString("role", value, (*string)(into))
}

// dotted puts the key before what encoding/json says.
func dotted(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(".%s", fieldError(key, err).Message)
}

// kindOf names the kind of a checked value in the words of a JSON reader.
func kindOf(value []byte) string {
	switch first(value) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
