package kv

import "time"

// Entry is one value of a bucket.
type Entry struct {
	Key      string
	Value    []byte // must not be changed
	Revision uint64
	Created  time.Time // by the server's clock; for people, not for arithmetic
	Received time.Time // by the local clock, with its monotonic reading

	age time.Duration // when received, both ends by the server's clock
}

// Age is how long ago the server stored the value. It compares no two
// machines' clocks: the age on arrival is a difference of server times, and the
// rest is local monotonic time.
func (e Entry) Age(now time.Time) time.Duration { return e.age + now.Sub(e.Received) }

// Op is what happened to a key.
type Op string

const (
	OpPut    Op = "put"
	OpDelete Op = "delete" // somebody deleted or purged the key and left a marker
	OpExpire Op = "expire" // the server's TTL marker
	OpVanish Op = "vanish" // a re-read did not find the key, and no marker says why
)

// Change is one step of a key. Entry is the new value; without one it has only
// the key and, if a marker told, its revision and times. Old is the value
// before: its Key is empty if there was none, and its Revision is 0 if it was of
// a bucket that has been made anew since and counts from 1 again.
type Change struct {
	Op         Op
	Entry, Old Entry
}
