// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// fastOpen is MSG_FASTOPEN: a send that connects.
const fastOpen = 0x20000000

// Offsets into struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// architectures are the native ones for which the filter knows the numbers of the calls. Elsewhere, and in programs for
// another architecture (32 bit), connections are found by scanning.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filter is the classic BPF program that hands connect(2), and sends that connect, to the supervisor and allows all else.
// ok is false where the architecture is not known.
func filter() (program []unix.SockFilter, ok bool) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, false
	}
	const allow, tell = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	bits := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	return []unix.SockFilter{
		0:  load(dataArch),
		1:  equal(arch, 0, 9), // else 11: allow
		2:  load(dataNumber),
		3:  equal(unix.SYS_CONNECT, 8, 0), // 12: tell
		4:  equal(unix.SYS_SENDTO, 2, 0),
		5:  equal(unix.SYS_SENDMSG, 3, 0),
		6:  answer(allow),
		7:  load(dataArgs + 3*8), // flags of sendto
		8:  bits(fastOpen, 3, 2),
		9:  load(dataArgs + 2*8), // flags of sendmsg
		10: bits(fastOpen, 1, 0),
		11: answer(allow),
		12: answer(tell),
	}, true
}
