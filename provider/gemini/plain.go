package gemini

import "github.com/llmbus/llmbus/internal/scan"

// plain reads a piece that is one text, and the counts that come with each.
func (r *reader) plain(c *scan.Cursor) bool {
	var used usage
	ok := c.Object(func(key []byte) bool {
		switch string(key) {
		case "candidates":
			return c.List(func(i int) bool { return i == 0 && plainCandidate(c) })
		case "usageMetadata":
			return used.plain(c)
		case "modelVersion":
			raw, ok := c.String()
			return ok && string(scan.Bare(raw)) == r.model // of the first piece, which is decoded in full
		case "responseId":
			raw, ok := c.String()
			return ok && string(scan.Bare(raw)) == r.id
		}
		return false
	})
	if ok && r.usage != nil {
		r.usage.update(&used)
	}
	return ok && r.usage != nil
}

func plainCandidate(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return c.Is("0")
		case "content":
			return c.Object(func(key []byte) bool {
				switch string(key) {
				case "role":
					return c.Any()
				case "parts":
					return c.List(func(i int) bool { return i == 0 && plainPart(c) })
				}
				return false
			})
		}
		return false
	})
}

func plainPart(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool { return string(key) == "text" && c.Text() })
}

func (u *usage) plain(c *scan.Cursor) bool {
	return c.Object(func(key []byte) bool {
		switch string(key) {
		case "promptTokenCount":
			return count(&u.Prompt, c)
		case "toolUsePromptTokenCount":
			return count(&u.ToolPrompt, c)
		case "cachedContentTokenCount":
			return count(&u.Cached, c)
		case "candidatesTokenCount":
			return count(&u.Candidates, c)
		case "thoughtsTokenCount":
			return count(&u.Thoughts, c)
		case "totalTokenCount", "promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails", "toolUsePromptTokensDetails", "trafficType":
			return c.Any()
		}
		return false
	})
}

func count(into **int64, c *scan.Cursor) bool {
	n, ok := c.Number()
	*into = &n
	return ok
}
