// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/schedule"
)

// sample is how many bytes the receiving kernel has taken at an instant: neither agent is asked.
type sample struct {
	at    int64 // µs
	bytes int64
}

// sampler reads TCP_INFO of the receiver's own socket, borrowed with pidfd_getfd.
type sampler struct {
	fd int
}

// watch finds the data connection of a running receiver.
func watch(t *testing.T, h *host) *sampler {
	t.Helper()
	pid := h.cmd.Process.Pid
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skipf("SKIPPED, pacing not measured: pidfd_open: %v", err)
	}
	defer unix.Close(pidfd)
	port := h.address[strings.LastIndex(h.address, ":")+1:]
	eventually(t, "a sender is received", 15*time.Second, func() bool { return strings.Contains(h.logged(), "msg=receiving") })
	var found int
	eventually(t, "the data connection is up", 15*time.Second, func() bool {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, e := range entries {
			n, _ := strconv.Atoi(e.Name())
			fd, err := unix.PidfdGetfd(pidfd, n, 0)
			if err != nil {
				continue
			}
			if _, err := unix.Getpeername(fd); err == nil && localPort(fd) == port {
				found = fd
				return true
			}
			_ = unix.Close(fd)
		}
		return false
	})
	t.Cleanup(func() { _ = unix.Close(found) })
	return &sampler{found}
}

func localPort(fd int) string {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return ""
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return strconv.Itoa(a.Port)
	case *unix.SockaddrInet6:
		return strconv.Itoa(a.Port)
	}
	return ""
}

const sampleEvery = 20 * time.Millisecond

// until takes samples until then.
func (s *sampler) until(end time.Time) []sample {
	var samples []sample
	for time.Now().Before(end) {
		info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			break
		}
		samples = append(samples, sample{time.Now().UnixMicro(), int64(info.Bytes_received)})
		time.Sleep(sampleEvery)
	}
	return samples
}

// goodput is the mean rate of the samples within [from, to), and its span.
func goodput(samples []sample, from, to int64) (bps float64) {
	var first, last *sample
	for i := range samples {
		if s := &samples[i]; s.at >= from && s.at < to {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == nil || last == first {
		return 0
	}
	return float64(last.bytes-first.bytes) * 8e6 / float64(last.at-first.at)
}

// loopback is the largest packet of that device, headers not counted.
const loopback = 65_483

// worst is the window of at least 500 ms in which most was received beyond what was booked: the excess in percent of
// what was booked in it, after leaving out what arrived within lateness of it, which may belong to the time before.
// A window that is mostly gap is compared with 250 ms at 100 Mbit/s. What the loopback carries as one packet counts at once.
func worst(samples []sample, plan schedule.Schedule, lateness int64) (percent float64, at int64) {
	percent = -100
	least := schedule.Volume(100_000_000, 250_000)
	for i, j := 0, 0; i < len(samples); i++ {
		for j < len(samples) && samples[j].at-samples[i].at < 500_000 {
			j++
		}
		if j == len(samples) {
			break
		}
		allowed := plan.Bytes(samples[i].at-lateness, samples[j].at) + loopback
		excess := float64(samples[j].bytes - samples[i].bytes - allowed)
		if over := 100 * excess / float64(max(allowed, least)); over > percent {
			percent, at = over, samples[i].at
		}
	}
	return percent, at
}

// lateness is by how much this host was late at most with something as simple as taking a sample: what arrived so much
// later, or was counted so much later, is not the agent's doing.
func lateness(samples []sample) (most int64) {
	for i := 1; i < len(samples); i++ {
		most = max(most, samples[i].at-samples[i-1].at-sampleEvery.Microseconds())
	}
	return most
}

func planOf(booked []brokerapi.AssignedSegment) schedule.Schedule {
	var segments []schedule.Segment
	for _, s := range booked {
		segments = append(segments, schedule.Segment{Begin: s.Begin.UnixMicro(), End: s.End.UnixMicro(), RateBps: s.RateBps})
	}
	return schedule.New(segments)
}
