// Package gemini speaks to models through Google's generateContent API, of the
// Gemini API or, with another ModelsPath and a token, of Vertex AI.
//
// What the API cannot take as it is, is moved or refused, never dropped in
// silence: system messages become the one system instruction, messages of one
// author in a row are merged, and the results of parallel calls are put in the
// order of the calls, since that is what joins them. A switch to serial tool
// calls and images by URL fail with DetailUnsupported before anything is sent.
// Hints that are left out are named in the Response's Warnings.
//
// Newer models refuse a history whose calls lack the signature of the thought
// behind them. The neutral request has no place for it, and a call that another
// model made never had one, so every call in a history carries the word that
// Google documents for this case.
//
// A stream comes as server-sent events or, from some proxies, as one JSON array
// in pieces; both are read.
package gemini
