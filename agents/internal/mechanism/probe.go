// SPDX-License-Identifier: Apache-2.0

package mechanism

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/tcpsock"
)

// Means are what a host has for the mechanisms that need more than a socket.
type Means struct {
	// Classes of HTB, or why there are none.
	Classes   Classes
	NoClasses error
	// FQ says why packets to an address do not pass an fq qdisc; nil when they do.
	FQ func(to netip.Addr) error
	// NoFQ says why there is no use in asking; nil when a device has one.
	NoFQ error
}

// Probe tries out what this host can do. prefer must not be empty.
func Probe(prefer []Name, means Means) *Host {
	h := &Host{prefer: prefer, classes: means.Classes, fq: means.FQ}
	pacing := probePacing()
	reasons := map[Name]error{
		Pacing: pacing, HTB: means.NoClasses, FQ: errors.Join(means.NoFQ, pacing), Window: probeWindow(), Userland: nil,
	}
	if means.Classes == nil && means.NoClasses == nil {
		reasons[HTB] = errors.New("this process does not shape")
	}
	if means.FQ == nil && means.NoFQ == nil {
		reasons[FQ] = errors.New("this process does not look at qdiscs")
	}
	for _, name := range All {
		r := Report{Name: name, Available: reasons[name] == nil}
		if !r.Available {
			r.Reason = reasons[name].Error()
		}
		h.reports = append(h.reports, r)
	}
	return h
}

// probePacing sets a rate beyond 32 bits and reads it back.
func probePacing() error {
	return probe(func(fd int) error {
		const want = 80_000_000_000
		held, err := tcpsock.SetPacingRate(fd, want)
		switch {
		case errors.Is(err, unix.ENOPROTOOPT):
			return errors.New("the kernel has no SO_MAX_PACING_RATE (Linux 3.13)")
		case err != nil:
			return err
		case held != want:
			return fmt.Errorf("the kernel keeps pacing rates in 32 bits (before Linux 4.20): %d bit/s became %d", int64(want), held)
		}
		return nil
	})
}

// probeWindow: acknowledgements must be counted by the kernel.
func probeWindow() error {
	return probe(func(fd int) error {
		_, err := tcpsock.Info(fd)
		if err == nil {
			_, _, err = tcpsock.SendQueue(fd)
		}
		return err
	})
}

func probe(f func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}
