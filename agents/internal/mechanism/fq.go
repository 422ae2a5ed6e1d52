// SPDX-License-Identifier: Apache-2.0

package mechanism

import "net/netip"

// newFQ is pacing that the fq qdisc of the device carries out. Since Linux 4.20 the time of a packet is computed by TCP for
// fq too, so that it counts payload like pacing without fq. The qdisc is the administrator's: it is looked for, never made.
func newFQ(leads func(to netip.Addr) error) Limiter {
	return &pacing{name: FQ, allowed: func(s Socket) error {
		if err := leads(s.Remote().Addr()); err != nil {
			return &Unavailable{FQ, err.Error()}
		}
		return nil
	}}
}
