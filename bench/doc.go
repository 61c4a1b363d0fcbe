// Command bench compares the broker with its floor on one machine, in one
// command:
//
//	go run ./bench                 every scenario
//	go run ./bench -run burst      those whose name matches
//
// The floor is the least that a NATS worker between a caller and a provider can
// do: take a message, put the model into its bytes, post it with a tuned
// net/http, and publish what comes back. It has no deadline, id, log, check or
// way to fail. What the broker costs more than that is the price of everything
// that it does.
//
// Everything runs on 127.0.0.1, in processes of their own, so that the CPU time
// of each can be told apart: a mock provider, a NATS server, the floor, the
// broker, and this command, which is the load. A scenario runs in rounds; each
// round runs every side once and starts with another one, and the ratios that
// are printed are medians of the ratios within a round, since a machine that is
// busy with other things slows both sides of a round alike.
package main
