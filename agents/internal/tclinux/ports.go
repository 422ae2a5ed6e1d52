// SPDX-License-Identifier: Apache-2.0

package tclinux

import "math/bits"

// portMask matches the ports p with p & mask == value.
type portMask struct{ value, mask uint16 }

// masks covers a range of ports exactly, with as few masks as there are (at most 30): at each step the largest aligned
// block that begins where the last one ended. Ranges cannot be told to u32 otherwise.
func masks(p Ports) []portMask {
	if p == (Ports{}) {
		return []portMask{{}}
	}
	var made []portMask
	first, last := uint32(p.First), uint32(p.Last)
	for first <= last {
		block := uint32(1) << min(bits.TrailingZeros32(first|1<<16), bits.Len32(last-first+1)-1)
		made = append(made, portMask{uint16(first), uint16(0xffff &^ (block - 1))})
		first += block
	}
	return made
}
