package gateway

import "github.com/llmbus/llmbus/llm"

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
