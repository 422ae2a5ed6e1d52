// SPDX-License-Identifier: Apache-2.0

package gateway

import "math/bits"

// Lateness counts durations in classes an eighth wide, so that a percentile is right to 12.5 % whatever the range.
type Lateness struct {
	classes [61 * 8]int64
	count   int64
	sum     int64
	most    int64
}

// Add counts one; what is negative was on time.
func (l *Lateness) Add(ns int64) {
	ns = max(ns, 0)
	l.classes[class(ns)]++
	l.count++
	l.sum += ns
	l.most = max(l.most, ns)
}

// Max is the largest, in ns.
func (l *Lateness) Max() int64 { return l.most }

// Count is how many there were.
func (l *Lateness) Count() int64 { return l.count }

// Mean in ns.
func (l *Lateness) Mean() int64 {
	if l.count == 0 {
		return 0
	}
	return l.sum / l.count
}

// Percentile is an upper bound, in ns, of what perMille of a thousand did not exceed.
func (l *Lateness) Percentile(perMille int64) int64 {
	rank := (l.count*perMille + 999) / 1000
	for i, n := range l.classes {
		rank -= n
		if n > 0 && rank <= 0 {
			return min(upper(i), l.most)
		}
	}
	return l.most
}

// class: the three bits after the leading one choose within a power of two; what is below 8 has a class of its own.
func class(ns int64) int {
	if ns < 8 {
		return int(ns)
	}
	shift := bits.Len64(uint64(ns)) - 4
	return (shift+1)*8 + int(ns>>shift)&7
}

func upper(class int) int64 {
	if class < 8 {
		return int64(class)
	}
	shift := class/8 - 1
	return int64(class%8+9)<<shift - 1
}
