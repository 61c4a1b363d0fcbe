// Package e2e tests llmbus from outside.
//
// Tests named Fleet run several workers, each with a NATS connection, KV
// mirrors, breakers and a chain of its own, against one scripted provider in a
// bubble of fake time, so that hundreds of cool-downs cost no time. Tests named
// Process run the built binary: several processes, real sockets, real signals.
// Tests named Cluster run on three NATS servers.
package e2e
