// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is encoded for the kernel is what is parsed from it: the kernel answers in the same structures.
func TestThereAndBack(t *testing.T) {
	shape := Shape{RateBps: 400_000_000_000, Burst: time.Millisecond, Quantum: 200_000}
	for _, shape.RateBps = range []int64{8, 1_000_000_000, 34_359_738_360, 34_359_738_368, 400_000_000_000} {
		_, _, body := encode(Operation{Verb: Add, Class: &KernelClass{Minor: 7, Shape: shape}}, 3)
		if c, ok := parseClass(body); !ok || c != (KernelClass{Minor: 7, Shape: shape}) {
			t.Errorf("%+v became %+v", shape, c)
		}
	}
	m := Match{TCP, netip.MustParsePrefix("fd09::/64"), netip.MustParsePrefix("fd09::2/128"), Ports{1, 9}, Ports{5201, 5210}}
	for _, f := range filters([]Match{m}, 5) {
		_, _, body := encode(Operation{Verb: Add, Filter: &KernelFilter{f, 0x80000801}}, 3)
		if g, ok := parseFilter(body); !ok || g != (KernelFilter{f, 0x80000801}) {
			t.Errorf("%v became %v", f, g)
		}
	}
	_, _, body := encode(Operation{Verb: Add, Kind: htb}, 3)
	if q, index, parent, ok := parseQdisc(body); !ok || index != 3 || parent != tcRoot || !ours(q) {
		t.Errorf("%+v on %d at %x", q, index, parent)
	}
}

func TestStatistics(t *testing.T) {
	_, _, body := encode(Operation{Verb: Add, Class: &KernelClass{Minor: 7, Shape: Shape{RateBps: 8}}}, 3)
	words := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
		return b
	}
	basic := append(binary.NativeEndian.AppendUint64(nil, 1<<40), words(12, 0)...)
	stats := attribute(attribute(nil, tcaStatsBasic, basic), tcaStatsQueue, words(1, 1514, 3, 0, 9))
	if c, _ := parseClass(attribute(body, tcaStats2, stats)); c.Bytes != 1<<40 || c.Packets != 12 || c.Backlog != 1514 || c.Drops != 3 {
		t.Errorf("%+v", c)
	}
	many := attribute(stats, tcaStatsPacket64, binary.NativeEndian.AppendUint64(nil, 1<<33))
	if c, _ := parseClass(attribute(body, tcaStats2, many)); c.Packets != 1<<33 {
		t.Errorf("%+v", c)
	}
}

// message is one netlink message.
func message(kind, flags uint16, sequence uint32, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, sequence)
	b = append(binary.NativeEndian.AppendUint32(b, 0), body...)
	return append(b, make([]byte, align(len(b))-len(b))...)
}

func TestAnswers(t *testing.T) {
	refusal := binary.NativeEndian.AppendUint32(nil, uint32(0x100000000-uint64(unix.EINVAL)))
	refusal = append(refusal, make([]byte, unix.NLMSG_HDRLEN)...)
	words := attribute(refusal, unix.NLMSGERR_ATTR_MSG, terminated("Specified class not found"))
	ok := make([]byte, 4)
	for _, c := range []struct {
		name, err string
		datagram  []byte
		bodies    int
		complete  bool
	}{
		{"done", "", message(unix.NLMSG_ERROR, 0, 7, ok), 0, true},
		{"refused", "invalid argument", message(unix.NLMSG_ERROR, 0, 7, refusal), 0, true},
		{"refused with words", "invalid argument (Specified class not found)", message(unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS, 7, words), 0, true},
		{"a dump's part", "", append(message(unix.RTM_NEWTCLASS, 2, 7, ok), message(unix.RTM_NEWTCLASS, 2, 7, ok)...), 2, false},
		{"a dump's end", "", message(unix.NLMSG_DONE, 2, 7, ok), 0, true},
		{"of another request", "", message(unix.NLMSG_ERROR, 0, 6, refusal), 0, false},
		{"cut off", "netlink: a message of 20 bytes in 18", message(unix.NLMSG_DONE, 2, 7, ok)[:18], 0, false},
		{"no code", "netlink: an acknowledgement without a code", message(unix.NLMSG_ERROR, 0, 7, nil), 0, true},
	} {
		var a answer
		err := a.take(c.datagram, 7)
		if err == nil && c.err != "" || err != nil && err.Error() != c.err || len(a.bodies) != c.bodies || a.complete != c.complete {
			t.Errorf("%s: %v, %+v", c.name, err, a)
		}
		if strings.HasPrefix(c.err, "invalid") && !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v is not EINVAL", c.name, err)
		}
	}
	var a answer
	if _ = a.take(message(unix.RTM_NEWTCLASS, unix.NLM_F_DUMP_INTR, 7, ok), 7); !a.interrupted {
		t.Error("an interrupted dump was taken for a whole one")
	}
}

// Nothing that a kernel, of whatever version, may say is a reason to fall over; what is taken for ours is ours.
func FuzzParse(f *testing.F) {
	for _, op := range []Operation{
		{Verb: Add, Kind: htb}, {Verb: Add, Class: &KernelClass{Minor: 1, Shape: Shape{400e9, time.Millisecond, 9}}},
		{Verb: Add, Filter: &KernelFilter{filters([]Match{{Protocol: TCP, DestinationPorts: Ports{1, 1}}}, 1)[0], 0x80000800}},
	} {
		kind, _, body := encode(op, 3)
		f.Add(message(kind, 2, 7, body))
	}
	f.Add(message(unix.RTM_NEWLINK, 2, 7, attribute(make([]byte, unix.SizeofIfInfomsg), unix.IFLA_IFNAME, terminated("eth0"))))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		var a answer
		_ = a.take(datagram, 7)
		for _, body := range a.bodies {
			parseLink(body)
			parseQdisc(body)
			if c, ok := parseClass(body); ok && c.Shape.RateBps < 0 {
				t.Errorf("%+v", c)
			}
			if k, ok := parseFilter(body); ok && packKeys(k.Keys.All()) != k.Keys {
				t.Errorf("%+v", k)
			}
		}
	})
}
