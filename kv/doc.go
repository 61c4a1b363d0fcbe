// Package kv keeps what workers share: typed JetStream buckets, local mirrors
// of them that are fed by push, the kill switches, and the cache of answers.
package kv
