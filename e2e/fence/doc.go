// Package fence tests the server configurations in deploy/nats: that workers can
// do their work with the permissions that they have there, that they use every
// one of them, and that callers can do nothing that is not theirs.
//
// Each configuration is loaded as it is, into a server on a free port, with two
// real workers and a simulated provider. An attack is refused if nothing comes of
// it: the victim's request goes on, the bucket is as it was, the wiretap of the
// operator, who hears everything, has not seen the attacker's mark.
package fence
