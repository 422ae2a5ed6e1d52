// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/clock"
	"bandwidthbroker/agents/internal/tclinux"
)

// ThisHost is the one that runs this process. close lets go of it.
func ThisHost() (h Host, closed func(), err error) {
	kernel, err := tclinux.OpenKernel()
	if err != nil {
		return Host{}, nil, err
	}
	return Host{
		Root: "/", Clock: clock.ReadHost, Roots: kernel.Roots, Probe: kernel.Probe, Offload: offload, Free: free,
	}, func() { _ = kernel.Close() }, nil
}

// The commands of SIOCETHTOOL (linux/ethtool.h).
const (
	getTSO = 0x1e // ETHTOOL_GTSO
	getGSO = 0x23 // ETHTOOL_GGSO
)

func offload(device string) (tso, gso bool, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, false, err
	}
	defer unix.Close(fd)
	var failures []error
	for _, ask := range []struct {
		command uint32
		answer  *bool
	}{{getTSO, &tso}, {getGSO, &gso}} {
		on, err := ethtoolValue(fd, device, ask.command)
		*ask.answer = on
		failures = append(failures, err)
	}
	return tso, gso, errors.Join(failures...)
}

func free(folder string) (left, size uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", folder, err)
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
