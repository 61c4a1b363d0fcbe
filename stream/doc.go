// Package stream writes and reads the frames of one streamed answer.
//
// Its subjects (llm.stream.<request-id>, or the caller's reply inbox) are plain
// core NATS: nothing is stored, and no JetStream stream may be put over them,
// since what nobody listens to should cost nothing. Frames that readers may come
// back for are published a second time, on a subject of their own.
//
//	        Write(start|delta|tool_call)          Write(end|error)
//	       ┌──────┐                              ┌───────────────┐
//	       ▼      │                              │               ▼
//	open ─►  live ─┴── PingEvery without a frame: ping            ended
//
// Invariants:
//   - seq rises by one from 1 (a request that another worker begins anew before
//     any text counts from 1 again) and every message carries one, pings too. A frame
//     that could not be published keeps its number, so that a reader sees a gap
//     and never a splice.
//   - Nothing follows the end or error frame, but for the one empty message that
//     closes a reply inbox.
//   - The deltas and tool calls of the last attempt are the whole answer: what
//     the end frame knows and no frame has shown is sent before it.
//   - A reader never takes a cut stream for a whole one: it ends with an end
//     frame or with an error.
//
// Core NATS delivers at most once. A lost connection or a slow reader costs
// frames, which the reader reports as a *GapError; a dead worker shows as
// ErrSilent when its pings stop.
package stream
