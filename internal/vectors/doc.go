// Package vectors plays recorded shapes of provider behaviour to an adapter: it
// loads a case, serves its upstream over a real socket with the faults it names,
// checks the request the adapter sent, and compares what the adapter concluded.
// It is for tests only.
package vectors
