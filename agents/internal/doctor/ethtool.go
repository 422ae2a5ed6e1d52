// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue asks one yes or no of a device (struct ethtool_value in a struct ifreq).
func ethtoolValue(fd int, device string, command uint32) (bool, error) {
	value := struct{ command, data uint32 }{command: command}
	var request struct {
		name  [unix.IFNAMSIZ]byte
		value unsafe.Pointer
		_     [16]byte // the rest of the union
	}
	copy(request.name[:len(request.name)-1], device)
	request.value = unsafe.Pointer(&value)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return false, errno
	}
	return value.data != 0, nil
}
