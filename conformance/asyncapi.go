package conformance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/schemas"
	"github.com/llmbus/llmbus/subjects"
)

// channel is one subject of the protocol, as a worker sees it.
type channel struct {
	name, address, about string
	action               string // receive or send
	messages             []string
	reply                []string // messages on the reply subject; none: no reply
	queue                string
}

// channels is the table of subjects that callers use. What workers say among
// themselves is not part of the protocol.
func channels() []channel {
	return []channel{
		{name: "requests", address: subjects.Complete("{feature}"), action: "receive", messages: []string{"request"}, reply: []string{"reply", "frame", "terminator"}, queue: subjects.Queue,
			about: "A request. The reply subject gets one reply, or the frames of a stream and one empty message."},
		{name: "frames", address: under(subjects.Stream("", ""), "request_id"), action: "send", messages: []string{"frame"}, about: "Frames of one answer."},
		{name: "cancels", address: under(subjects.Cancel(""), "request_id"), action: "receive", messages: []string{"signal"}, about: "Stop the request of that id."},
		{name: "readers", address: under(subjects.Resume(""), "request_id"), action: "receive", messages: []string{"resume"}, reply: []string{"frame", "reply", "terminator"}, queue: subjects.Queue,
			about: "A reader that comes back: the reply subject gets the kept frames, or a refusal, and one empty message."},
		{name: "status", address: subjects.Status, action: "receive", messages: []string{"signal"}, reply: []string{"status"}, about: "Every worker answers with its state."},
		{name: "jobs", address: subjects.Job("{feature}"), action: "receive", messages: []string{"job"}, about: "A request that is answered later, stored in the stream " + subjects.JobsStream + "."},
		{name: "results", address: under(subjects.Result("", ""), "job_id"), action: "send", messages: []string{"result"}, about: "The answer of a job, stored in the stream " + subjects.ResultsStream + "."},
		{name: "dead", address: under(subjects.DeadLetter("{feature}", "", ""), "job_id"), action: "send", messages: []string{"dead-letter"}, about: "A job that was given up, stored in the stream " + subjects.DeadStream + "."},
		{name: "events", address: subjects.Event("{event}"), action: "send", messages: []string{"event"}, about: "What happens, as it happens."},
		{name: "breakers", address: subjects.BreakerPrefix + "{breaker}", action: "send", messages: []string{"breaker"}, about: "Each change of a circuit breaker, republished from its bucket."},
		{name: "flags", address: subjects.FlagPrefix + "{flag}", action: "send", messages: []string{"flag"}, about: "Each change of a switch, republished from its bucket."},
	}
}

// under puts a parameter in the place of an empty id, which is spelt "=".
func under(subject, parameter string) string {
	return strings.TrimSuffix(subject, "=") + "{" + parameter + "}"
}

// messages of the channels: the schemas of payload and headers, where there are
// any.
func messages() map[string]map[string]any {
	entry := func(title, payload, headers string) map[string]any {
		m := map[string]any{"title": title}
		if payload != "" {
			m["payload"] = component(payload)
		}
		if headers != "" {
			m["headers"] = component(headers)
		}
		return m
	}
	list := map[string]map[string]any{
		"request": entry("A request", "request", "request-headers"), "reply": entry("An answer or an error", "reply", "reply-headers"),
		"frame": entry("A piece of a streamed answer", "frame", "reply-headers"), "terminator": entry("The empty message that ends a stream on the reply subject", "", ""),
		"signal": entry("Anything; its payload is not read", "", ""), "resume": entry("From which frame on", "", "resume-headers"),
		"status": entry("The state of a worker", "status", ""), "job": entry("A request for later", "request", "job-headers"),
		"result": entry("The answer of a job", "response", "reply-headers"), "dead-letter": entry("A job that was given up", "dead-letter", "reply-headers"),
		"event": entry("What happened", "event", ""), "breaker": entry("The state of a circuit breaker", "breaker", ""), "flag": entry("A switch", "flag", ""),
	}
	list["flag"]["contentType"] = "text/plain"
	return list
}

func component(schema string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + schema}
}

// AsyncAPI is the protocol as an AsyncAPI 3 document, from the view of a worker.
// It is made of the schemas and says the same each time.
func AsyncAPI(version string) ([]byte, error) {
	bundled, err := bundle()
	if err != nil {
		return nil, err
	}
	list, operations := map[string]any{}, map[string]any{}
	for _, c := range channels() {
		list[c.name] = c.describe(c.messages)
		op := map[string]any{"action": c.action, "channel": map[string]any{"$ref": "#/channels/" + c.name}, "summary": c.about}
		if c.queue != "" {
			op["bindings"] = map[string]any{"nats": map[string]any{"queue": c.queue}}
		}
		if len(c.reply) > 0 {
			inbox := channel{name: c.name + "Reply", about: "The reply subject that the caller chose."}
			list[inbox.name] = inbox.describe(c.reply)
			op["reply"] = map[string]any{"channel": map[string]any{"$ref": "#/channels/" + inbox.name}}
		}
		operations[c.name] = op
	}
	doc := map[string]any{
		"asyncapi": "3.0.0",
		"info": map[string]any{"title": "llmbus", "version": version, "license": map[string]any{"name": "Apache-2.0"},
			"description": "LLM requests over NATS, as workers see them. docs/protocol.md has the rules that no schema can say."},
		"defaultContentType": "application/json",
		"channels":           list, "operations": operations,
		"components": map[string]any{"schemas": bundled, "messages": messages()},
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// describe is a channel of the document; without an address it is known at run
// time only.
func (c channel) describe(names []string) map[string]any {
	refs := map[string]any{}
	for _, name := range names {
		refs[name] = map[string]any{"$ref": "#/components/messages/" + name}
	}
	d := map[string]any{"address": nil, "description": c.about, "messages": refs}
	if c.address == "" {
		return d
	}
	d["address"] = c.address
	parameters := map[string]any{}
	for part := range strings.SplitSeq(c.address, ".") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			parameters[name] = map[string]any{"description": parameter(name)}
		}
	}
	if len(parameters) > 0 {
		d["parameters"] = parameters
	}
	return d
}

func parameter(name string) string {
	switch name {
	case "feature":
		return subjects.FeatureRule
	case "breaker":
		return "<provider>.<model>, both escaped"
	case "flag":
		return "the key of the switch, such as feature.<name>"
	case "event":
		return "the name of the event"
	}
	return "1 to 128 printable ASCII characters, escaped; A-Z, a-z, 0-9, - and _ stay as they are"
}

// bundle is all schemas as components that refer to one another inside the
// document.
func bundle() (map[string]any, error) {
	bundled := map[string]any{}
	for _, name := range schemas.Names() {
		text, err := schemas.Text(name)
		if err != nil {
			return nil, err
		}
		var schema map[string]any
		if err := json.Unmarshal(text, &schema); err != nil {
			return nil, err
		}
		delete(schema, "$schema")
		delete(schema, "$id")
		bundled[name] = inside(schema)
	}
	return bundled, nil
}

// inside turns references to files into references to components.
func inside(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			if file, ok := v[key].(string); ok && key == "$ref" {
				v[key] = "#/components/schemas/" + strings.TrimSuffix(file, ".json")
			} else {
				v[key] = inside(v[key])
			}
		}
	case []any:
		for i := range v {
			v[i] = inside(v[i])
		}
	}
	return v
}
