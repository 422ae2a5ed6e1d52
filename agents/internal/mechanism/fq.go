// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
)

// FQ is pacing that the fq qdisc carries out.
const FQ Name = "fq"

// newFQ is pacing that the fq qdisc of the device carries out. Since Linux 4.20 the time of a packet is computed by TCP for
// fq too, so that it counts payload like pacing without fq. The qdisc is the administrator's: it is looked for, never made.
func newFQ(means Means, _ string) pacing.Limiter {
	return &pacedSockets{tsoLog: tcpsock.TSORoundTripLog(), allowed: func(s pacing.Socket) error {
		if err := means.FQ(s.Remote().Addr()); err != nil {
			return &Unavailable{FQ, err.Error()}
		}
		return nil
	}}
}

func probeFQ(means Means) error {
	if means.FQ == nil && means.NoFQ == nil {
		return errors.New("this process does not look at qdiscs")
	}
	return errors.Join(means.NoFQ, probePacing(means))
}
