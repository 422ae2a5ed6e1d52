// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// What a message holds that is too short, of another kind or of somebody else's making is not an error: it is not ours,
// and ok is false.

// linkHeaders are the bytes in front of the network header that count, by type of device (ARPHRD_...). Others, as TUN,
// have none.
var linkHeaders = map[uint16]int{unix.ARPHRD_ETHER: 14, unix.ARPHRD_LOOPBACK: 14}

func parseLink(b []byte) (l Link, ok bool) {
	if len(b) < unix.SizeofIfInfomsg {
		return l, false
	}
	l.Header = linkHeaders[binary.NativeEndian.Uint16(b[2:])]
	l.Index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	for kind, value := range attributes(b[unix.SizeofIfInfomsg:]) {
		switch {
		case kind == unix.IFLA_IFNAME:
			l.Name = text(value)
		case kind == unix.IFLA_MTU && len(value) >= 4:
			l.MTU = int(binary.NativeEndian.Uint32(value))
		}
	}
	return l, l.Name != "" && l.Index > 0
}

// object is what all messages of traffic control share.
type object struct {
	index                int
	handle, parent, info uint32
	kind                 string
	options, statistics  []byte
	more                 []byte // statistics of the kind of qdisc
}

func parseObject(b []byte) (o object, ok bool) {
	if len(b) < sizeTcHeader {
		return o, false
	}
	o.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	o.handle, o.parent, o.info = binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:]), binary.NativeEndian.Uint32(b[16:])
	for kind, value := range attributes(b[sizeTcHeader:]) {
		switch kind {
		case tcaKind:
			o.kind = text(value)
		case tcaOptions:
			o.options = value
		case tcaStats2:
			o.statistics = value
		case tcaXStats:
			o.more = value
		}
	}
	return o, true
}

// parseQdisc returns where a qdisc hangs, too: at the root of its device, below the root, or elsewhere.
func parseQdisc(b []byte) (q Qdisc, index int, parent uint32, ok bool) {
	o, ok := parseObject(b)
	if !ok || o.kind == "" {
		return q, 0, 0, false
	}
	q.Kind, q.Handle = o.kind, o.handle
	if o.kind == htb {
		for kind, value := range attributes(o.options) {
			if kind == tcaHTBInit && len(value) >= sizeHTBInit {
				q.Marker = binary.NativeEndian.Uint32(value[4:])
			}
		}
	}
	return q, o.index, o.parent, true
}

func parseClass(b []byte) (c KernelClass, ok bool) {
	o, ok := parseObject(b)
	if !ok || o.kind != htb || o.handle>>16 != major {
		return c, false
	}
	c.Minor = uint16(o.handle)
	var rate uint64
	found := false
	for kind, value := range attributes(o.options) {
		switch {
		case kind == tcaHTBParams && len(value) >= sizeHTBParams:
			found = true
			rate = max(rate, uint64(binary.NativeEndian.Uint32(value[8:])))
			c.Shape.Burst = time.Duration(binary.NativeEndian.Uint32(value[24:])) * bucketUnit
			c.Shape.Quantum = binary.NativeEndian.Uint32(value[32:])
		case kind == tcaHTBRate64 && len(value) >= 8:
			rate = binary.NativeEndian.Uint64(value)
		}
	}
	c.Shape.RateBps = int64(min(rate, uint64(maxRateBps))) * 8
	parseStatistics(o.statistics, &c)
	if len(o.more) >= sizeHTBStats { // struct tc_htb_xstats: the fourth is what is in the bucket
		tokens := int32(binary.NativeEndian.Uint32(o.more[12:]))
		c.Debt = time.Duration(max(0, -int64(tokens))) * bucketUnit
	}
	return c, found
}

func parseStatistics(b []byte, c *KernelClass) {
	for kind, value := range attributes(b) {
		switch {
		case kind == tcaStatsBasic && len(value) >= 12: // struct gnet_stats_basic
			c.Bytes = binary.NativeEndian.Uint64(value)
			c.Packets = max(c.Packets, uint64(binary.NativeEndian.Uint32(value[8:])))
		case kind == tcaStatsPacket64 && len(value) >= 8: // beside the above once 32 bits do not hold them
			c.Packets = binary.NativeEndian.Uint64(value)
		case kind == tcaStatsQueue && len(value) >= 12: // struct gnet_stats_queue
			c.Backlog = uint64(binary.NativeEndian.Uint32(value[4:]))
			c.Drops = uint64(binary.NativeEndian.Uint32(value[8:]))
		}
	}
}

func parseFilter(b []byte) (f KernelFilter, ok bool) {
	o, ok := parseObject(b)
	if !ok || o.kind != "u32" || o.parent != Handle || o.handle&0xfff == 0 {
		return f, false // a handle without a node is a hash table
	}
	f.Handle = o.handle
	found := false
	for kind, value := range attributes(o.options) {
		switch {
		case kind == tcaU32ClassID && len(value) >= 4:
			id := binary.NativeEndian.Uint32(value)
			f.Minor, found = uint16(id), found || id>>16 == major
		case kind == tcaU32Selector && len(value) >= sizeSelector:
			f.Keys = parseKeys(value)
		}
	}
	f.V6 = o.info>>16 == uint32(Filter{V6: true}.priority())
	return f, found
}

func parseKeys(selector []byte) Keys {
	var keys []Key
	left := int(selector[2])
	for b := selector[sizeSelector:]; left > 0 && len(b) >= sizeSelectorKey; b, left = b[sizeSelectorKey:], left-1 {
		keys = append(keys, Key{
			Mask: binary.BigEndian.Uint32(b), Value: binary.BigEndian.Uint32(b[4:]), Offset: int32(binary.NativeEndian.Uint32(b[8:])),
		})
	}
	return packKeys(keys)
}
