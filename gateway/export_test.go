package gateway

import (
	"maps"
	"slices"

	"github.com/llmbus/llmbus/llm"
)

// DecodeChat is decodeChat for tests from outside.
func DecodeChat(body []byte) (*llm.Request, error) {
	c, err := decodeChat(body)
	if err != nil {
		return nil, err
	}
	return c.req, nil
}

// ParamOf is paramOf for tests from outside.
func ParamOf(message string) string { return paramOf(message) }

// Translation is how an error looks to a caller.
type Translation struct {
	Status     int
	Kind, Code string
	Retry      bool
}

// Translations are those of all codes of the bus.
func Translations() map[string]Translation {
	all := map[string]Translation{}
	for code := range translations {
		p := problemOf(&llm.Error{Code: code})
		all[string(code)] = Translation{p.status, p.kind, p.code, p.retry}
	}
	return all
}

// Fields are the fields of the API that are known here.
func Fields() []string { return slices.Sorted(maps.Keys(fields)) }
