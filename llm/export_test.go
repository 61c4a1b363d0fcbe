package llm

// WithoutText forgets the caller's own text of the messages, which a request
// that was not decoded does not have.
func (r *Request) WithoutText() *Request {
	r.messagesJSON = nil
	return r
}
