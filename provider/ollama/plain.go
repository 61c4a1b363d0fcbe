package ollama

import "github.com/llmbus/llmbus/internal/scan"

// plain reads a line that holds a piece of the content and nothing else.
func (r *reader) plain(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "model":
			raw, ok := c.String()
			return ok && string(scan.Bare(raw)) == r.model // of the first line, which is decoded in full
		case "created_at":
			return c.Free()
		case "done":
			return c.Is("false")
		case "message":
			return c.Object(func(key []byte) bool {
				switch string(key) {
				case "role":
					return c.Is(`"assistant"`)
				case "content":
					return c.Text()
				case "thinking":
					return c.Is(`""`)
				case "tool_calls", "images":
					return c.Is("null")
				}
				return false
			})
		}
		return false
	})
}
