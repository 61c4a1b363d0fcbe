// Command broker runs and operates llmbus: it serves requests, asks questions,
// shows breakers, flips switches, keeps the configuration, simulates a provider
// and demonstrates itself.
package main
