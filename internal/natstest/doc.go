// Package natstest starts real NATS servers for tests: inside a synctest bubble
// without a socket, on a loopback port that survives a restart, or as
// a cluster whose servers can die, be cut off and return.
package natstest
