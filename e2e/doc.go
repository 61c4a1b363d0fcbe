// Package e2e tests llmbus from outside.
//
// Tests named Fleet run several workers, each with a NATS connection, KV
// mirrors, breakers and a chain of its own, against one scripted provider in a
// bubble of fake time, so that hundreds of cool-downs cost no time. Tests named
// Process run the built binary: several processes, real sockets, real signals.
// Tests named Cluster run on three NATS servers that are killed and cut off, and
// those named Load on more than a worker is made for. Tests named Crash put every
// bad day of a provider through a fleet, as requests and as streams; Soak does so
// at random, for as long as -soak says. Files with the build tag compose run
// against the containers of docker-compose.yml.
package e2e
