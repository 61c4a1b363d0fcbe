// Package replay keeps the frames of resumable answers for a few minutes, in the
// JetStream stream LLM_STREAMS, and gives them back.
//
// Workers publish such frames to llm.replay.<request-id> as plain messages, so
// that writing waits for nobody. Nothing else has subjects in that space:
// ordinary streams are never stored.
//
// Everything is bounded: by age, by the number of frames of one answer, and by
// bytes in all; the oldest goes first. Frames are in memory only. What JetStream
// lost, because its leader changed or its server was started anew, is missing
// when it is read: frames are numbered, so a reader sees that.
package replay
