// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Host is what the kernel says of the host's own clock.
type Host struct {
	ErrorMicros  int64 // its estimate of the clock's error
	Synchronised bool  // something (NTP, PTP) steers it
	// Slew is what is still to be bent into the clock, monotonic time included: up to 500 ppm until it is done.
	Slew time.Duration
}

// ReadHost asks adjtimex, changing nothing.
func ReadHost() Host {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return Host{}
	}
	unit := time.Microsecond
	if t.Status&unix.STA_NANO != 0 {
		unit = time.Nanosecond
	}
	return Host{
		ErrorMicros:  t.Esterror,
		Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		Slew:         time.Duration(t.Offset) * unit,
	}
}

const (
	// steered is by how much two clocks drift apart that are both steered: NTP's frequency tolerance (RFC 5905, section 7.1,
	// PHI = 15e-6) for each.
	steered = 30
	// free is the same for a host whose clock runs free: ordinary crystals are within 100 ppm.
	free = 115
	// slewing is the fastest that Linux bends its clock.
	slewing = 500
)

// drift bounds by how much this host's time and the broker's may have moved apart since so long ago.
func (h Host) drift(age time.Duration) time.Duration {
	ppm := time.Duration(steered)
	if !h.Synchronised {
		ppm = free
	}
	return parts(age, ppm) + min(h.Slew.Abs(), parts(age, slewing))
}

func parts(d, ppm time.Duration) time.Duration { return d / 1000 * ppm / 1000 }
