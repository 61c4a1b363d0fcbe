package sim

import "encoding/json"

// protocol turns calls and answers into the bytes of one provider's API.
type protocol interface {
	decode(body []byte) (call, error)
	failure(status int) []byte // an error body
	whole(a answer) []byte     // the answer in one body

	streamType() string             // the content type of a stream
	event(data []byte) []byte       // one JSON text in the stream's framing
	begin(a answer) []byte          // what comes before the first token
	piece(a answer, p piece) []byte // a token, or a tool call
	finish(a answer) []byte         // the finish reason and the usage
	done(a answer) []byte           // the terminator
}

// object spares the encoders a struct for every shape.
type object = map[string]any

// encode marshals what the encoders build: maps, slices and scalars only.
func encode(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}

// sse frames one JSON text as a server-sent event.
func sse(data []byte) []byte { return append(append([]byte("data: "), data...), "\n\n"...) }

// namedSSE frames it with the event's name before it.
func namedSSE(name string, data []byte) []byte {
	return append([]byte("event: "+name+"\n"), sse(data)...)
}

// inputTokens is the usual rule of thumb.
func inputTokens(body []byte) int { return max(1, len(body)/4) }

const simulated = "simulated fault"
