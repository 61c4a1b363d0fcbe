// Package ollama speaks to models through Ollama's native /api/chat.
//
// The native API is used, not the OpenAI-compatible one, because only there can
// the context window be set, and only there does a stream that breaks say so. An
// over-long prompt is refused instead of being cut in silence, as far as the
// server is new enough to obey truncate: false.
//
// A tool choice that forces a call, a switch to serial calls, and images by URL
// cannot be expressed and fail with DetailUnsupported before anything is sent.
// tool_choice none is obeyed by offering no tools. Hints that are left out are
// named in the Response's Warnings.
package ollama
