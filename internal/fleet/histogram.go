package fleet

import "math/bits"

// Times are counted in slots that are exact below 16 ms and an eighth of their
// value wide above, up to 70 minutes, so that a second of traffic has a fixed
// size.
const (
	exact   = 16
	longest = 1<<22 - 1 // ms; what is longer counts as this
	slots   = 18*8 + 16
)

type histogram [slots]uint32

func slotOf(ms int64) int {
	ms = min(max(ms, 0), longest)
	if ms < exact {
		return int(ms)
	}
	e := bits.Len64(uint64(ms)) - 4
	return e*8 + int(ms>>e)
}

// middleOf is a time that stands for all of a slot.
func middleOf(slot int) int64 {
	if slot < exact {
		return int64(slot)
	}
	e := slot/8 - 1
	low := int64(slot-e*8) << e
	return low + (int64(1)<<e)/2
}

func (h *histogram) add(ms int64) { h[slotOf(ms)]++ }

func (h *histogram) merge(o *histogram) {
	for i, n := range o {
		h[i] += n
	}
}

// quantile returns the time that a share q of all is not above; nil without any.
func (h *histogram) quantile(q float64) *int64 {
	var all uint64
	for _, n := range h {
		all += uint64(n)
	}
	if all == 0 {
		return nil
	}
	rank := max(1, uint64(q*float64(all)+0.999999))
	var seen uint64
	for i, n := range h {
		if seen += uint64(n); seen >= rank {
			return new(middleOf(i))
		}
	}
	return new(int64(longest))
}

func (h *histogram) latency() Latency {
	return Latency{P50: h.quantile(0.5), P95: h.quantile(0.95), P99: h.quantile(0.99)}
}
