// Package sim is a model provider that fails on demand: an HTTP server on a
// real socket that speaks the OpenAI, Anthropic and Ollama chat protocols,
// plain and streaming, and breaks in the way its caller names.
//
// Which way is named by the model of the request,
//
//	sim-[once-|first-<n>-]<fault>[-<argument>…][-t<tokens>][-g<gap>]
//
// as in sim-ok, sim-status-503, sim-429-retry-2, sim-stall-after-20,
// sim-once-reset or sim-ok-t60-g20ms (Help lists them all), or by a rule that
// was set before, which wins over the name:
//
//	POST   /control {"fault": "status-503", "for": "30s", "times": 3, "provider": "openai", "model": "gpt-5"}
//	GET    /control     the rules in force
//	DELETE /control     none any more; a server that was down is up again
//	GET    /stats       calls, open connections, calls that their client gave up
//
// Every field of a rule but fault is optional. A model that does not begin
// with sim- answers properly.
//
// Answers are fixed text: nothing of a request is kept or repeated but its
// model, and the names of its tools and schema properties. Time is real, since
// sockets are.
//
// A server is up, down or closed:
//
//	       down-<n>, Control(down)
//	up ──────────────────────────────► down   nothing listens, every other
//	▲                                   │     connection was reset
//	└───────────────────────────────────┘
//	  n seconds, or Clear (same port again)
//
//	Close, or the end of Run's context: closed, for good; every handler that
//	hangs or stalls on purpose is released first.
package sim
