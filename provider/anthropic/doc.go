// Package anthropic speaks to models through Anthropic's Messages API.
//
// What the API cannot take as it is, is moved or refused, never dropped in
// silence:
//
//   - System messages become the one system text, wherever they stood.
//   - Messages of one author in a row are merged, as are a tool's results with
//     the user message after them, results first.
//   - max_tokens, which the API demands, has a configured default.
//   - A temperature over 1 is lowered to 1. This and other hints that are left
//     out are named in the Response's Warnings.
//   - A seed, an image form or a stop sequence that the API has no place for
//     fails with DetailUnsupported before anything is sent.
//
// Extended thinking is not asked for: its signed blocks would have to come back
// with the next request, and the neutral request has no place for them. Thinking
// that comes all the same is kept apart from the answer.
package anthropic
