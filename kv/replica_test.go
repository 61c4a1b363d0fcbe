package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	birth = time.Unix(100, 0)
	later = func(n int) time.Time { return time.Unix(1000+int64(n), 0) }
)

func put(key string, revision uint64) update {
	return update{OpPut, Entry{Key: key, Revision: revision, Received: later(int(revision))}}
}

func gone(key string, revision uint64) update {
	return update{OpDelete, Entry{Key: key, Revision: revision, Received: later(int(revision))}}
}

// shot is a snapshot that began after everything up to revision last was seen.
func shot(last uint64, updates ...update) snapshot {
	return snapshot{started: later(int(last)).Add(time.Millisecond), created: birth, last: last, updates: updates}
}

func TestReplicaMovesForwardsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []any // update or snapshot
		want  map[string]uint64
	}{
		"newer push":                        {[]any{put("a", 1), put("a", 2)}, map[string]uint64{"a": 2}},
		"older push":                        {[]any{put("a", 2), put("a", 1)}, map[string]uint64{"a": 2}},
		"push before the first snapshot":    {[]any{put("a", 5), shot(4, put("b", 4))}, map[string]uint64{"a": 5, "b": 4}},
		"snapshot older than push":          {[]any{shot(1, put("a", 1)), put("a", 3), shot(3, put("a", 3))}, map[string]uint64{"a": 3}},
		"late push after snapshot":          {[]any{shot(4, put("b", 4)), put("a", 3)}, map[string]uint64{"b": 4}},
		"deletion is not undone by a push":  {[]any{put("a", 1), gone("a", 3), put("a", 2)}, map[string]uint64{}},
		"marker in a snapshot":              {[]any{put("a", 1), shot(2, gone("a", 2))}, map[string]uint64{}},
		"vanished":                          {[]any{put("a", 1), put("b", 2), shot(2, put("b", 2))}, map[string]uint64{"b": 2}},
		"pushed while the snapshot is read": {[]any{put("a", 5), snapshot{started: later(4), created: birth, last: 4}}, map[string]uint64{"a": 5}},
		"overtaken snapshot": {[]any{shot(9, put("a", 9)), snapshot{started: later(3), created: birth, last: 3, updates: []update{put("a", 2), put("b", 3)}}},
			map[string]uint64{"a": 9}},
		"marker after a snapshot, overtaken": {[]any{put("a", 1), gone("a", 5), snapshot{started: later(2), created: birth, last: 2, updates: []update{put("a", 1)}}},
			map[string]uint64{}},
		"created again": {[]any{put("a", 1), gone("a", 2), put("a", 3), shot(3, put("a", 3))}, map[string]uint64{"a": 3}},
		"another stream": {[]any{shot(9, put("a", 9), put("b", 8)), snapshot{started: later(20), created: birth.Add(1), last: 1, updates: []update{put("a", 1)}}},
			map[string]uint64{"a": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(map[string]*Entry{})
			for _, step := range tc.steps {
				switch s := step.(type) {
				case update:
					r.push(s)
				case snapshot:
					_, err := r.adopt(s, later(50))
					require.NoError(t, err)
				}
			}
			got := map[string]uint64{}
			for key, e := range r.entries {
				got[key] = e.Revision
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// A server that is behind is not believed at once: it may be catching up.
func TestReplicaBelievesALossAfterSeveralReads(t *testing.T) {
	r := newReplica(map[string]*Entry{})
	_, err := r.adopt(shot(10, put("a", 10)), later(10))
	require.NoError(t, err)
	r.push(put("a", 12))
	lost := snapshot{started: later(60), created: birth, last: 10, updates: []update{put("a", 10)}}
	for range lostAfter - 1 {
		_, err = r.adopt(lost, later(60))
		require.ErrorIs(t, err, errBehind)
		require.EqualValues(t, 12, r.entries["a"].Revision)
	}
	changes, err := r.adopt(lost, later(60))
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Zero(t, changes[0].Old.Revision, "revisions have begun anew")
	require.EqualValues(t, 10, r.entries["a"].Revision)
	require.Len(t, r.push(put("a", 11)), 1)
}
