package llm

// AppendJSON appends the wire form of the request. Messages are written by hand,
// since a prompt is most of a request; the rest goes through encoding/json.
func (r *Request) AppendJSON(dst []byte) ([]byte, error) {
	if len(r.Messages) == 0 {
		return appendValue(dst, r)
	}
	rest := *r
	rest.Messages = nil
	members, err := appendValue(nil, &rest)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"messages":[`...)
	for i := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendMessage(dst, &r.Messages[i]); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if len(members) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, members[1:]...), nil
}

func appendMessage(dst []byte, m *Message) ([]byte, error) {
	if len(m.Content) > 1 || len(m.Content) == 1 && m.Content[0].Type != PartText || len(m.ToolCalls) > 0 {
		return appendValue(dst, m)
	}
	dst = append(dst, `{"role":`...)
	dst = AppendString(dst, string(m.Role))
	if len(m.Content) == 1 {
		dst = append(dst, `,"content":`...)
		dst = AppendString(dst, m.Content[0].Text)
	}
	dst = appendField(dst, "name", m.Name)
	dst = appendField(dst, "tool_call_id", m.ToolCallID)
	return append(dst, '}'), nil
}
