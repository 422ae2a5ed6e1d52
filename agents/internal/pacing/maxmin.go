// SPDX-License-Identifier: Apache-2.0

package pacing

// Unbounded is the want of a stream that takes whatever it is given.
const Unbounded = int64(1) << 60

// MaxMin divides a rate by max-min fairness: as equally as the wants allow, none of which is negative. What is left when all
// wants are met goes to all in equal parts: it costs nothing, and the first stream that wants it has it at once. The sum is exactly total.
func MaxMin(total int64, wants []int64) []int64 {
	given := make([]int64, len(wants))
	if len(wants) == 0 {
		return given
	}
	left := total
	open := make([]int, len(wants))
	for i := range open {
		open[i] = i
	}
	// A want below an equal part of what is left is met, and the part grows for the others.
	for changed := true; changed && len(open) > 0; {
		changed = false
		part := left / int64(len(open))
		var still []int
		for _, i := range open {
			if wants[i] < part {
				given[i] = wants[i]
				left -= wants[i]
				changed = true
			} else {
				still = append(still, i)
			}
		}
		open = still
	}
	if len(open) == 0 {
		for i := range wants {
			open = append(open, i)
		}
	}
	part, rest := left/int64(len(open)), left%int64(len(open))
	for k, i := range open {
		given[i] += part
		if int64(k) < rest {
			given[i]++
		}
	}
	return given
}
