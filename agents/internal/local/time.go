// SPDX-License-Identifier: Apache-2.0

package local

import "golang.org/x/sys/unix"

// Monotonic is the host's monotonic clock in µs: the same number for all processes at the same instant.
func Monotonic() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return now.Nano() / 1000
}
