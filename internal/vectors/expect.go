package vectors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ExpectRequest is what the adapter must have sent. Body may hold operators:
// {"$type", "$min"}, {"$in"}, {"$match", "$bind"} and {"$bound"}.
type ExpectRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   map[string]string `json:"query"`
	Headers map[string]string `json:"headers"`
	Body    map[string]any    `json:"body"`
	Absent  []string          `json:"absent"` // dotted paths
}

// Check compares a request with the expectation.
func (e *ExpectRequest) Check(r Recorded) error {
	if e.Method != "" && e.Method != r.Method {
		return fmt.Errorf("method is %s, not %s", r.Method, e.Method)
	}
	if e.Path != "" && e.Path != r.Path {
		return fmt.Errorf("path is %s, not %s", r.Path, e.Path)
	}
	for name, want := range e.Query {
		if got := r.Query.Get(name); got != want {
			return fmt.Errorf("query %s is %q, not %q", name, got, want)
		}
	}
	for name, want := range e.Headers {
		if got := r.Header.Get(name); got != want {
			return fmt.Errorf("header %s is %q, not %q", name, got, want)
		}
	}
	body, err := decode(r.Body)
	if err != nil {
		return err
	}
	for _, path := range e.Absent {
		if found(body, strings.Split(path, ".")) {
			return fmt.Errorf("%s must be absent", path)
		}
	}
	if e.Body == nil {
		return nil
	}
	return matcher{}.match("body", e.Body, body)
}

func decode(data []byte) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&v)
	return v, err
}

func found(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[path[0]]
		return ok && found(inner, path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		return err == nil && i >= 0 && i < len(v) && found(v[i], path[1:])
	}
	return false
}

// matcher holds what $bind has bound.
type matcher map[string]any

func (m matcher) match(path string, want, got any) error {
	if object, ok := want.(map[string]any); ok {
		if isOperator(object) {
			return m.operate(path, object, got)
		}
		return m.object(path, object, got)
	}
	if list, ok := want.([]any); ok {
		return m.list(path, list, got)
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s is %v, not %v", path, got, want)
	}
	return nil
}

func (m matcher) object(path string, want map[string]any, got any) error {
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is %v, not an object", path, got)
	}
	for key, w := range want {
		g := object[key]
		switch key {
		case "content", "system":
			if w, g = oneText(w), oneText(g); blank(w) && blank(g) && object["tool_calls"] != nil {
				continue
			}
		case "arguments":
			w, g = asJSON(w), asJSON(g)
		}
		if err := m.match(path+"."+key, w, g); err != nil {
			return err
		}
	}
	return nil
}

func (m matcher) list(path string, want []any, got any) error {
	list, ok := got.([]any)
	if !ok || len(list) != len(want) {
		return fmt.Errorf("%s is %v, not a list of %d", path, got, len(want))
	}
	for i := range want {
		if err := m.match(fmt.Sprintf("%s[%d]", path, i), want[i], list[i]); err != nil {
			return err
		}
	}
	return nil
}

func isOperator(object map[string]any) bool {
	for key := range object {
		return strings.HasPrefix(key, "$") && key != "$ref" && key != "$schema" && key != "$defs"
	}
	return false
}

func (m matcher) operate(path string, op map[string]any, got any) error {
	if kind, ok := op["$type"].(string); ok && !hasKind(kind, got) {
		return fmt.Errorf("%s is %v, not of type %s", path, got, kind)
	}
	if low, ok := op["$min"].(float64); ok {
		if n, isNumber := got.(float64); !isNumber || n < low {
			return fmt.Errorf("%s is %v, less than %v", path, got, low)
		}
	}
	if choices, ok := op["$in"].([]any); ok && !slices.ContainsFunc(choices, func(c any) bool { return reflect.DeepEqual(c, got) }) {
		return fmt.Errorf("%s is %v, none of %v", path, got, choices)
	}
	if pattern, ok := op["$match"].(string); ok {
		if s, isText := got.(string); !isText || !regexp.MustCompile(pattern).MatchString(s) {
			return fmt.Errorf("%s is %v, which does not match %s", path, got, pattern)
		}
	}
	if name, ok := op["$bind"].(string); ok {
		m[name] = got
	}
	if name, ok := op["$bound"].(string); ok && !reflect.DeepEqual(m[name], got) {
		return fmt.Errorf("%s is %v, not %v as before", path, got, m[name])
	}
	return nil
}

func hasKind(kind string, v any) bool {
	switch v := v.(type) {
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	}
	return kind == "null"
}

// oneText takes a list with one text part for its text.
func oneText(v any) any {
	list, ok := v.([]any)
	if !ok || len(list) != 1 {
		return v
	}
	if part, ok := list[0].(map[string]any); ok && part["text"] != nil && (part["type"] == "text" || part["type"] == nil) {
		return part["text"]
	}
	return v
}

func blank(v any) bool { return v == nil || v == "" }

// asJSON decodes arguments that are sent as text.
func asJSON(v any) any {
	if s, ok := v.(string); ok {
		if decoded, err := decode([]byte(s)); err == nil {
			return decoded
		}
	}
	return v
}
