// Package providertest is the conformance suite of provider adapters: what
// package provider promises of every llm.Completer, tried over a real socket.
//
// An adapter's test tells Run how to make the adapter and how its provider
// answers on the wire; the suite plays those answers whole, broken and slow.
package providertest
