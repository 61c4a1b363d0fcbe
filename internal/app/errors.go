package app

import "errors"

var (
	// ErrClosed means that the connection to NATS is closed for good although
	// nobody asked for it: the server refuses the credentials, for example.
	ErrClosed = errors.New("the connection to NATS is closed for good")

	// ErrPortTaken means that the embedded server cannot listen.
	ErrPortTaken = errors.New("the port is taken")
)
