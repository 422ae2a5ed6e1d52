// SPDX-License-Identifier: Apache-2.0

package pacing

// Stream is one connection of a command as it was seen last. Whether it wants more is asked of the kernel, which knows of
// bytes that wait. Package mechanism cannot use that: it may hold the writer back before the kernel sees its bytes, so it
// compares what was sent with what could have been.
type Stream struct {
	RateBps int64 // what it sent lately
	Hungry  bool  // it would send more if it might, or that is not known yet
}

// spare is how much more than what they send is left to connections that do not use their share (1/spare of a fair one),
// so that it shows when they want more, and so that the first packet after a pause does not hold up the second for long.
// For the 40 ms until it shows the sum may be that much too high, which over 200 ms is less than 1 %.
const spare = 4

// Split divides a rate between connections by MaxMin, and leaves those that are not hungry a little more than they send.
// The caps together may exceed total by that; what is sent stays within total as long as they remain content. An Account
// above it counts what was sent; a limiter that has none above must give no more than the rate, as package mechanism does.
func Split(total int64, streams []Stream) []int64 {
	if len(streams) == 0 {
		return nil
	}
	fair := total / int64(len(streams))
	anyHungry := false
	for _, s := range streams {
		anyHungry = anyHungry || s.Hungry
	}
	wants := make([]int64, len(streams))
	for i, s := range streams {
		switch {
		case s.Hungry:
			wants[i] = Unbounded
		case anyHungry:
			wants[i] = min(s.RateBps, fair)
		default:
			wants[i] = s.RateBps
		}
	}
	caps := MaxMin(total, wants)
	for i, s := range streams {
		if anyHungry && !s.Hungry {
			caps[i] = min(s.RateBps+fair/spare, fair)
		}
	}
	return caps
}
