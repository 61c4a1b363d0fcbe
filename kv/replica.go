package kv

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// update is what the bucket says about one key, by push or in a snapshot.
type update struct {
	op Op
	Entry
}

// snapshot is all of a bucket, markers included, read at one time.
type snapshot struct {
	started time.Time // local
	created time.Time // of the stream: another value means another stream
	last    uint64    // updates are complete up to this revision
	pushed  bool      // the bucket republishes its changes
	updates []update
}

// errBehind means that a server knows less than it did before: a new leader
// that still catches up, or files that were lost.
var errBehind = errors.New("server is behind what it said before")

// lostAfter is how many reads in a row must be behind before the mirror
// believes that the server has really lost something and starts over.
const lostAfter = 5

// replica holds what is known of a bucket and moves only forwards in
// revisions. It is pure: no clock, no I/O, one user. The map in entries is
// never changed once made, so that readers may hold it.
type replica struct {
	entries map[string]*Entry
	gone    map[string]uint64 // markers above floor
	created time.Time
	floor   uint64    // a snapshot covered everything up to here
	top     uint64    // highest revision seen
	topAt   time.Time // when it was seen
	behind  int
}

func newReplica(entries map[string]*Entry) replica {
	return replica{entries: entries, gone: make(map[string]uint64)}
}

// push applies one change that the server announced.
func (r *replica) push(u update) []Change {
	if u.Revision <= r.floor {
		return nil
	}
	r.saw(u.Revision, u.Received)
	next := maps.Clone(r.entries)
	changes := r.apply(next, u, false, nil)
	r.entries = next
	return changes
}

// adopt applies a snapshot: what is newer, and the end of keys that it does
// not have although it is recent enough to have them.
func (r *replica) adopt(s snapshot, now time.Time) ([]Change, error) {
	anew := false // nothing that is known counts
	switch {
	case r.created.IsZero():
	case !s.created.Equal(r.created):
		anew = true
	case s.last < r.top && !s.started.Before(r.topAt):
		if r.behind++; r.behind < lostAfter {
			return nil, errBehind
		}
		anew = true
	case s.last < r.floor:
		return nil, nil // overtaken by a snapshot that began later
	}
	if anew {
		r.gone, r.top, r.topAt = make(map[string]uint64), 0, time.Time{}
	}
	r.created, r.behind = s.created, 0
	next := maps.Clone(r.entries)
	slices.SortFunc(s.updates, func(a, b update) int { return cmp.Compare(a.Revision, b.Revision) })
	known := make(map[string]bool, len(s.updates))
	var changes []Change
	for _, u := range s.updates {
		known[u.Key] = true
		r.saw(u.Revision, now)
		changes = r.apply(next, u, anew, changes)
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if e := next[key]; !known[key] && (anew || e.Revision <= s.last) {
			delete(next, key)
			changes = append(changes, Change{Op: OpVanish, Entry: Entry{Key: key, Received: now}, Old: *e})
		}
	}
	r.entries, r.floor = next, s.last
	maps.DeleteFunc(r.gone, func(_ string, revision uint64) bool { return revision <= s.last })
	return changes, nil
}

// apply changes next by u if u is newer than what is known, or anew.
func (r *replica) apply(next map[string]*Entry, u update, anew bool, changes []Change) []Change {
	var old Entry
	e, had := next[u.Key]
	if had {
		old = *e
	}
	if anew {
		old.Revision = 0
	} else if u.Revision <= old.Revision || u.Revision <= r.gone[u.Key] {
		return changes
	}
	if u.op == OpPut {
		next[u.Key] = &u.Entry
		delete(r.gone, u.Key)
		return append(changes, Change{Op: u.op, Entry: u.Entry, Old: old})
	}
	delete(next, u.Key)
	r.gone[u.Key] = u.Revision
	if !had {
		return changes
	}
	return append(changes, Change{Op: u.op, Entry: u.Entry, Old: old})
}

func (r *replica) saw(revision uint64, at time.Time) {
	if revision > r.top {
		r.top, r.topAt = revision, at
	}
}
