// SPDX-License-Identifier: Apache-2.0

package share

// Stream is one connection as it was seen last.
type Stream struct {
	RateBps int64 // what it sent lately
	Hungry  bool  // it would send more if it might, or nobody knows yet
}

// spare is how much more than what they send is left to connections that do not use their share (1/spare of a fair one),
// so that it shows when they want more, and so that the first packet after a pause does not hold up the second for long.
// For the 40 ms until it shows the sum may be that much too high, which over 200 ms is less than 1 %.
const spare = 4

// Split divides a rate between connections by need (max-min fair): who sends less than its share keeps a little more than
// that, the others divide the rest evenly. The sum of the caps may be above total by what the content ones
// are left; what is really sent stays within total as long as they remain content.
func Split(total int64, streams []Stream) []int64 {
	caps := make([]int64, len(streams))
	var content, used int64
	for _, s := range streams {
		if !s.Hungry {
			content++
			used += s.RateBps
		}
	}
	n := int64(len(streams))
	hungry := n - content
	switch {
	case n == 0:
		return caps
	case hungry == 0:
		// Nobody is held back by us: what is not used is anybody's.
		left := max(0, total-used) / n
		for i, s := range streams {
			caps[i] = scaled(s.RateBps, total, max(used, total)) + left
		}
		return caps
	}
	fair := total / n
	room := fair / spare
	used = 0
	for i, s := range streams {
		if !s.Hungry {
			caps[i] = min(s.RateBps+room, fair)
			used += min(s.RateBps, fair)
		}
	}
	for i, s := range streams {
		if s.Hungry {
			caps[i] = (total - used) / hungry
		}
	}
	return caps
}

// scaled is n x part / whole, for rates that together exceed what may be sent.
func scaled(n, part, whole int64) int64 {
	if part >= whole {
		return n
	}
	return int64(float64(n) * float64(part) / float64(whole))
}
