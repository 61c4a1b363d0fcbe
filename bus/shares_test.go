package bus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flood takes as many slots for each tenant, in turn, as they can get.
func flood(s *slots, tenants ...string) map[string]int {
	got := map[string]int{}
	for again := true; again; {
		again = false
		for _, t := range tenants {
			if s.take(t, at(0)) == none {
				got[t]++
				again = true
			}
		}
	}
	return got
}

func TestATenantLeavesRoomForOthers(t *testing.T) {
	for _, tc := range []struct {
		slots   int
		tenants []string
		want    int // of each
	}{
		{256, []string{"a"}, 204},
		{256, []string{"a", "b"}, 113},
		{256, []string{"a", "b", "c"}, 78},
		{5, []string{"a"}, 4},
		{4, []string{"a"}, 3},
		{2, []string{"a"}, 1},
		{1, []string{"a"}, 1},
	} {
		s := newSlots(tc.slots, newShares(true), time.Second, time.Second)
		for _, n := range flood(s, tc.tenants...) {
			require.InDelta(t, tc.want, n, 1, "%d slots, %v", tc.slots, tc.tenants)
		}
		if tc.slots > 1 {
			require.Equal(t, unfair, s.take("a", at(0)))
			require.Equal(t, none, s.take("late", at(0)), "somebody who comes only now")
		}
	}
}

func TestAFloodOfOneTenantIsNoReasonToLeave(t *testing.T) {
	s := newSlots(8, newShares(true), time.Second, time.Second)
	flood(s, "a")
	expect(t, s, 100, stay, 0)
}

func TestWhatATenantGivesBackIsFree(t *testing.T) {
	s := newSlots(10, newShares(true), time.Second, time.Second)
	n := flood(s, "a")["a"]
	for range n {
		s.give("a", at(1))
	}
	require.Empty(t, s.shares.held)
	require.Equal(t, n, flood(s, "b")["b"])
}

func TestOneTenantAloneMayTakeAll(t *testing.T) {
	s := newSlots(8, nil, time.Second, time.Second)
	require.Equal(t, 8, flood(s, "")[""])
}
