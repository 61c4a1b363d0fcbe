package gateway

// field says what the gateway does with a field of a chat completion.
type field int

const (
	fieldUnknown field = iota // no effect; named in a warning
	fieldPassed               // the bus has the same
	fieldOwn                  // read or translated here
	fieldSilent               // says nothing about the answer; left out
	fieldRefused              // cannot be served, and an answer without it would mislead
)

// fields are those of the API that are known here.
var fields = map[string]field{
	"messages": fieldPassed, "tools": fieldPassed, "tool_choice": fieldPassed, "parallel_tool_calls": fieldPassed,
	"temperature": fieldPassed, "top_p": fieldPassed, "stop": fieldPassed, "seed": fieldPassed, "stream": fieldPassed,

	"model": fieldOwn, "max_tokens": fieldOwn, "max_completion_tokens": fieldOwn, "response_format": fieldOwn,
	"stream_options": fieldOwn, "n": fieldOwn, "modalities": fieldOwn,

	"user": fieldSilent, "metadata": fieldSilent, "store": fieldSilent, "service_tier": fieldSilent,
	"safety_identifier": fieldSilent, "prompt_cache_key": fieldSilent, "prompt_cache_retention": fieldSilent,

	"functions": fieldRefused, "function_call": fieldRefused, "audio": fieldRefused, "web_search_options": fieldRefused,
}

// remedies say what to do instead.
var remedies = map[string]string{
	"functions":          "functions are no longer taken; send tools",
	"function_call":      "function_call is no longer taken; send tool_choice",
	"audio":              "audio is not served; leave it out",
	"web_search_options": "web_search_options is not served; leave it out",
}

func isField(name string) bool { return fields[name] != fieldUnknown }
