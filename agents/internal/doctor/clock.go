// SPDX-License-Identifier: Apache-2.0

package doctor

import "fmt"

// clockErrorMost, in µs, is the agent's default --guard-limit: beyond it, steps of rates are not kept apart.
const clockErrorMost = 10_000

func (h Host) clock() []Finding {
	c := h.Clock()
	f := Finding{State: OK, What: "clock", Found: fmt.Sprintf("synchronised, off by %d us at most", c.ErrorMicros)}
	switch {
	case !c.Synchronised:
		f.State, f.Found = Todo, "nothing steers it"
	case c.ErrorMicros > clockErrorMost:
		f.State = Todo
	default:
		return []Finding{f}
	}
	f.Wanted = fmt.Sprintf("synchronised within %d us: booked steps happen by the clock", clockErrorMost)
	f.Change = "run chrony, ntpd, systemd-timesyncd or ptp4l"
	return []Finding{f}
}
