package anthropic

import "github.com/llmbus/llmbus/internal/scan"

// plain reads a text_delta.
func plain(c *scan.Cursor) bool {
	typed := false
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			typed = true
			return c.Is(`"content_block_delta"`)
		case "index":
			_, ok := c.Number()
			return ok
		case "delta":
			return c.Object(func(key []byte) bool {
				switch string(key) {
				case "type":
					return c.Is(`"text_delta"`)
				case "text":
					return c.Text()
				}
				return false
			})
		}
		return false
	}) && typed
}
