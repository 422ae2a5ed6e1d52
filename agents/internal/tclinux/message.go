// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The kernel's numbers, by their names in linux/pkt_sched.h, pkt_cls.h, rtnetlink.h and gen_stats.h.
const (
	tcRoot = 0xffffffff // TC_H_ROOT

	tcaKind, tcaOptions, tcaXStats, tcaStats2      = 1, 2, 4, 7
	tcaHTBParams, tcaHTBInit                       = 1, 2
	tcaHTBRate64, tcaHTBCeil64                     = 6, 7
	tcaU32ClassID, tcaU32Selector                  = 1, 5
	tcaStatsBasic, tcaStatsQueue, tcaStatsPacket64 = 1, 3, 8

	htbVersion     = 3
	linkEthernet   = 1 // TC_LINKLAYER_ETHERNET: the kernel computes with the rate itself, no table
	selectTerminal = 1 // TC_U32_TERMINAL: a match decides

	sizeTcHeader, sizeHTBInit, sizeHTBParams, sizeRateSpec, sizeHTBStats = 20, 20, 44, 12, 20
	sizeSelector, sizeSelectorKey                                        = 16, 16
)

// tcHeader is struct tcmsg.
func tcHeader(index int, of, parent, info uint32) []byte {
	b := make([]byte, sizeTcHeader)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], of)
	binary.NativeEndian.PutUint32(b[12:], parent)
	binary.NativeEndian.PutUint32(b[16:], info)
	return b
}

// encode makes the message of an operation.
func encode(op Operation, index int) (kind, flags uint16, body []byte) {
	flags = map[Verb]uint16{Add: unix.NLM_F_CREATE | unix.NLM_F_EXCL}[op.Verb]
	switch {
	case op.Class != nil:
		return encodeClass(op, flags, index)
	case op.Filter != nil:
		return encodeFilter(op, flags, index)
	case op.Verb == Delete:
		return unix.RTM_DELQDISC, flags, tcHeader(index, Handle, tcRoot, 0)
	}
	body = attribute(tcHeader(index, Handle, tcRoot, 0), tcaKind, terminated(op.Kind))
	if op.Kind != htb {
		return unix.RTM_NEWQDISC, flags, body
	}
	init := make([]byte, sizeHTBInit) // struct tc_htb_glob; a default class of 0: what no filter takes is not shaped
	binary.NativeEndian.PutUint32(init, htbVersion)
	binary.NativeEndian.PutUint32(init[4:], Marker)
	return unix.RTM_NEWQDISC, flags, attribute(body, tcaOptions, attribute(nil, tcaHTBInit, init))
}

func encodeClass(op Operation, flags uint16, index int) (uint16, uint16, []byte) {
	body := tcHeader(index, classID(op.Class.Minor), Handle, 0)
	if op.Verb == Delete {
		return unix.RTM_DELTCLASS, flags, body
	}
	s := op.Class.Shape
	bytesPerSecond := uint64(s.RateBps) / 8
	params := make([]byte, sizeHTBParams) // struct tc_htb_opt: rate, ceiling, buffer, buffer of the ceiling, quantum
	for _, spec := range [][]byte{params, params[sizeRateSpec:]} {
		spec[1] = linkEthernet
		binary.NativeEndian.PutUint32(spec[8:], uint32(min(bytesPerSecond, 1<<32-1)))
	}
	bucket := uint32(s.Burst / bucketUnit)
	binary.NativeEndian.PutUint32(params[24:], bucket)
	binary.NativeEndian.PutUint32(params[28:], bucket)
	binary.NativeEndian.PutUint32(params[32:], s.Quantum)
	options := attribute(nil, tcaHTBParams, params)
	if bytesPerSecond > 1<<32-1 {
		wide := binary.NativeEndian.AppendUint64(nil, bytesPerSecond)
		options = attribute(attribute(options, tcaHTBRate64, wide), tcaHTBCeil64, wide)
	}
	return unix.RTM_NEWTCLASS, flags, attribute(attribute(body, tcaKind, terminated(htb)), tcaOptions, options)
}

func encodeFilter(op Operation, flags uint16, index int) (uint16, uint16, []byte) {
	f := op.Filter
	protocol := uint16(unix.ETH_P_IP)
	if f.V6 {
		protocol = unix.ETH_P_IPV6
	}
	info := uint32(f.priority())<<16 | uint32(networkOrder(protocol))
	body := attribute(tcHeader(index, f.Handle, Handle, info), tcaKind, terminated("u32"))
	if op.Verb == Delete {
		return unix.RTM_DELTFILTER, flags, body
	}
	keys := f.Keys.All()
	selector := make([]byte, sizeSelector, sizeSelector+len(keys)*sizeSelectorKey) // struct tc_u32_sel
	selector[0], selector[2] = selectTerminal, byte(len(keys))
	for _, k := range keys { // struct tc_u32_key; value and mask are in network order
		selector = binary.BigEndian.AppendUint32(selector, k.Mask)
		selector = binary.BigEndian.AppendUint32(selector, k.Value)
		selector = binary.NativeEndian.AppendUint32(selector, uint32(k.Offset))
		selector = binary.NativeEndian.AppendUint32(selector, 0)
	}
	options := attribute(nil, tcaU32ClassID, binary.NativeEndian.AppendUint32(nil, classID(f.Minor)))
	return unix.RTM_NEWTFILTER, flags, attribute(body, tcaOptions, attribute(options, tcaU32Selector, selector))
}

// networkOrder is a number as its bytes in network order look to this machine.
func networkOrder(x uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, x))
}
