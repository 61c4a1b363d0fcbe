package bus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at makes times by seconds and fractions of one.
func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func fill(t *testing.T, s *slots, n int, now time.Time) {
	t.Helper()
	for range n {
		require.Equal(t, none, s.take("", now))
	}
}

func expect(t *testing.T, s *slots, seconds float64, want move, wait time.Duration) {
	t.Helper()
	got, again := s.next(at(seconds))
	require.Equal(t, want, got)
	require.Equal(t, wait, again)
}

func TestFullForTooLongLeaves(t *testing.T) {
	s := newSlots(8, nil, time.Second, 250*time.Millisecond)
	fill(t, s, 7, at(0))
	expect(t, s, 0, stay, 0)
	fill(t, s, 1, at(1))
	require.Equal(t, full, s.take("", at(1)))
	expect(t, s, 1, stay, time.Second)
	expect(t, s, 1.75, stay, 250*time.Millisecond)
	expect(t, s, 2, leave, 0)
	expect(t, s, 3, stay, 0)
}

func TestASlotTakenAgainAtOnceIsNoRelief(t *testing.T) {
	s := newSlots(4, nil, time.Second, time.Second)
	fill(t, s, 4, at(0))
	s.give("", at(0.9))
	fill(t, s, 1, at(0.95))
	expect(t, s, 1, leave, 0)
}

func TestASlotThatStaysFreeEndsTheSpell(t *testing.T) {
	s := newSlots(4, nil, time.Second, time.Second)
	fill(t, s, 4, at(0))
	s.give("", at(0.5))
	fill(t, s, 1, at(0.75))
	expect(t, s, 1, stay, 750*time.Millisecond)
	expect(t, s, 1.75, leave, 0)
}

func TestRejoinsOnlyAfterCalm(t *testing.T) {
	s := newSlots(8, nil, time.Second, 250*time.Millisecond)
	fill(t, s, 8, at(0))
	expect(t, s, 1, leave, 0)
	s.give("", at(2))
	s.give("", at(2))
	expect(t, s, 9, stay, 0) // 6 of 8 are not below three quarters
	s.give("", at(10))
	expect(t, s, 10, stay, 250*time.Millisecond)
	fill(t, s, 1, at(10.1)) // what was on its way when the worker left
	expect(t, s, 10.25, stay, 0)
	s.give("", at(11))
	expect(t, s, 11, stay, 250*time.Millisecond)
	expect(t, s, 11.25, rejoin, 0)
	expect(t, s, 12, stay, 0)
	fill(t, s, 3, at(12))
	expect(t, s, 12, stay, time.Second) // a new spell
}

func TestASingleSlotWorks(t *testing.T) {
	s := newSlots(1, nil, time.Second, time.Second)
	fill(t, s, 1, at(0))
	expect(t, s, 1, leave, 0)
	s.give("", at(2))
	expect(t, s, 3, rejoin, 0)
}

func TestSeldom(t *testing.T) {
	var s seldom
	n, now := s.tick()
	require.True(t, now)
	require.Equal(t, 1, n)
	for range 3 {
		_, now = s.tick()
		require.False(t, now)
	}
	s.last = s.last.Add(-seldomEvery)
	n, now = s.tick()
	require.True(t, now)
	require.Equal(t, 4, n)
}

// fullSpell has a worker of 8 slots rejoin at the given second, be full for a
// second and leave; it is calm a tenth of a second later.
func fullSpell(t *testing.T, s *slots, seconds float64) {
	t.Helper()
	expect(t, s, seconds, rejoin, 0)
	fill(t, s, 6, at(seconds))
	expect(t, s, seconds+1, leave, 0)
	for range 6 {
		s.give("", at(seconds+1.1))
	}
}

func TestARelapseIsFollowedByALongerAbsence(t *testing.T) {
	s := newSlots(8, nil, time.Second, 250*time.Millisecond)
	fill(t, s, 8, at(0))
	expect(t, s, 1, leave, 0)
	for range 6 {
		s.give("", at(1.1))
	}
	fullSpell(t, s, 1.35)
	expect(t, s, 2.5, stay, 200*time.Millisecond)
	expect(t, s, 2.7, ask, time.Second)
	expect(t, s, 3.2, stay, 500*time.Millisecond)
	expect(t, s, 3.75, ask, 600*time.Millisecond)
	fullSpell(t, s, 4.35)
	expect(t, s, 5.7, ask, time.Second)
	require.Equal(t, 4*time.Second, s.ban)
	expect(t, s, 9.35, rejoin, 0)
	fill(t, s, 6, at(10))
	expect(t, s, 10.1, stay, 150*time.Millisecond)
	expect(t, s, 10.25, leave, 0)
	for range 6 {
		s.give("", at(10.3))
	}

	s.pardon()
	fullSpell(t, s, 11)
	require.Equal(t, 2*time.Second, s.ban, "the fleet needed it, so that it begins anew")
	expect(t, s, 14.1, rejoin, 0)
	fill(t, s, 6, at(30))
	expect(t, s, 31, leave, 0)
	require.Zero(t, s.ban, "it kept up for a while")
}
