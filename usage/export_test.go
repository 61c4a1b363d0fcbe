package usage

// Crowd leaves room for n totals.
func (u *Usage) Crowd(n int) { u.room = n }

// Held is how many totals are in memory.
func (u *Usage) Held() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.rows)
}
