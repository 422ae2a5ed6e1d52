// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/tcpsock"
)

// Userland is a token bucket in the sender's own process.
const Userland Name = "userland"

// userland leaves everything to the token bucket in the sender (package pacing): the kernel sends what it is given at once
// (RR-6205, section 2.1.1, "userland timer").
type userland struct{}

func newUserland(Means, string) pacing.Limiter { return userland{} }

func probeUserland(Means) error { return nil }

func (userland) Attach(s pacing.Socket) error { return withFD(s, tcpsock.ClearPacingRate) }

func (userland) Detach(pacing.Socket) {}

func (userland) SetRate(rateBps int64) (int64, error) { return rateBps, nil }

func (userland) Balance(int64) error { return nil }

func (userland) Close() error { return nil }
