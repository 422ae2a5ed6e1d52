// SPDX-License-Identifier: Apache-2.0

package tclinux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kernel is the one that runs this process. What changes something needs CAP_NET_ADMIN.
type Kernel struct {
	netlink *connection
	lock    int // listening socket, or -1
}

// OpenKernel opens the network namespace of the calling thread.
func OpenKernel() (*Kernel, error) {
	netlink, err := connect()
	if err != nil {
		return nil, err
	}
	return &Kernel{netlink: netlink, lock: -1}, nil
}

// Close lets go of the lock and of the connection.
func (k *Kernel) Close() error {
	err := k.netlink.close()
	if k.lock >= 0 {
		err = errors.Join(err, unix.Close(k.lock))
		k.lock = -1
	}
	return err
}

// wakeUp is how late a process's or a soft interrupt's turn may come with timers of high resolution: measured, on two busy
// cores, see TestKernelRates.
const wakeUp = time.Millisecond

// Tick is that of the kernel's timers, and never below wakeUp. Without high-resolution timers (highres=off) it is that of
// the periodic interrupt, 1 to 10 ms.
func (k *Kernel) Tick() time.Duration {
	var resolution unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &resolution); err != nil {
		return wakeUp
	}
	return max(wakeUp, time.Duration(resolution.Nano()))
}

// Timestamps reads the host's setting; the peer must have it too, and mostly has.
func (k *Kernel) Timestamps() bool {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/tcp_timestamps")
	return err != nil || strings.TrimSpace(string(raw)) != "0"
}

// Probe asks for a qdisc of that kind on the loopback device, with options that none accepts: the kernel refuses the
// privilege first, then the kind, and only then the options.
func (k *Kernel) Probe(kind string) error {
	if kind != htb && kind != fq {
		return fmt.Errorf("%q is no qdisc that is used here", kind) // and may be one that takes any options
	}
	link, err := k.Link("lo")
	if err != nil {
		return err
	}
	body := attribute(tcHeader(link.Index, 0, tcRoot, 0), tcaKind, terminated(kind))
	// One attribute of every number, each shorter than it may be.
	var options []byte
	for number := uint16(1); number <= 16; number++ {
		options = attribute(options, number, []byte{0})
	}
	_, err = k.netlink.ask(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, attribute(body, tcaOptions, options))
	switch {
	case errors.Is(err, unix.EPERM):
		return ErrNoPrivilege
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: %w", kind, ErrNoQdisc)
	}
	return nil
}

// Route asks the routing table.
func (k *Kernel) Route(to netip.Addr) (string, error) {
	to = to.Unmap()
	header := make([]byte, unix.SizeofRtMsg)
	header[0], header[1] = unix.AF_INET, byte(to.BitLen())
	if to.Is6() {
		header[0] = unix.AF_INET6
	}
	answers, err := k.netlink.ask(unix.RTM_GETROUTE, 0, attribute(header, unix.RTA_DST, to.AsSlice()))
	if err != nil {
		return "", err
	}
	index, found := 0, false
	for _, body := range answers {
		if len(body) >= unix.SizeofRtMsg {
			for kind, value := range attributes(body[unix.SizeofRtMsg:]) {
				if kind == unix.RTA_OIF && len(value) >= 4 {
					index, found = int(binary.NativeEndian.Uint32(value)), true
				}
			}
		}
	}
	if !found {
		return "", fmt.Errorf("the route to %s names no device", to)
	}
	link, err := k.ask(index, "")
	return link.Name, err
}

// Link is one device.
func (k *Kernel) Link(device string) (Link, error) {
	link, err := k.ask(0, device)
	if errors.Is(err, unix.ENODEV) || err == nil && link.Name != device {
		return Link{}, fmt.Errorf("no device %q", device)
	}
	return link, err
}

// ask for one device by its index or by its name.
func (k *Kernel) ask(index int, name string) (Link, error) {
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(index))
	if name != "" {
		if len(name) >= unix.IFNAMSIZ {
			return Link{}, unix.ENODEV
		}
		body = attribute(body, unix.IFLA_IFNAME, terminated(name))
	}
	answers, err := k.netlink.ask(unix.RTM_GETLINK, 0, body)
	if err != nil {
		return Link{}, err
	}
	for _, answer := range answers {
		if l, ok := parseLink(answer); ok {
			return l, nil
		}
	}
	return Link{}, unix.ENODEV
}

func (k *Kernel) links() (map[int]Link, error) {
	answers, err := k.netlink.ask(unix.RTM_GETLINK, unix.NLM_F_DUMP, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		return nil, err
	}
	links := map[int]Link{}
	for _, body := range answers {
		if l, ok := parseLink(body); ok {
			links[l.Index] = l
		}
	}
	return links, nil
}

// Roots are the root qdiscs of all devices.
func (k *Kernel) Roots() ([]Qdisc, error) {
	links, err := k.links()
	if err != nil {
		return nil, err
	}
	answers, err := k.netlink.ask(unix.RTM_GETQDISC, unix.NLM_F_DUMP, tcHeader(0, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	roots := map[int]*Qdisc{}
	leaves := map[int][]uint32{} // parents, in order
	kinds := map[int][]string{}
	for _, body := range answers {
		q, index, parent, ok := parseQdisc(body)
		switch {
		case !ok || links[index].Name == "":
		case parent == tcRoot:
			q.Device = links[index].Name
			roots[index] = &q
		default:
			leaves[index], kinds[index] = append(leaves[index], parent), append(kinds[index], q.Kind)
		}
	}
	var found []Qdisc
	for index, root := range roots {
		for i, parent := range leaves[index] {
			if parent>>16 == root.Handle>>16 {
				root.Leaves = append(root.Leaves, kinds[index][i])
			}
		}
		found = append(found, *root)
	}
	return found, nil
}

// Classes of our root qdisc on a device.
func (k *Kernel) Classes(device string) ([]KernelClass, error) {
	link, err := k.Link(device)
	if err != nil {
		return nil, err
	}
	answers, err := k.netlink.ask(unix.RTM_GETTCLASS, unix.NLM_F_DUMP, tcHeader(link.Index, 0, 0, 0))
	if err != nil {
		return nil, err
	}
	var classes []KernelClass
	for _, body := range answers {
		if c, ok := parseClass(body); ok {
			classes = append(classes, c)
		}
	}
	return classes, nil
}

// Filters of our root qdisc on a device.
func (k *Kernel) Filters(device string) ([]KernelFilter, error) {
	link, err := k.Link(device)
	if err != nil {
		return nil, err
	}
	answers, err := k.netlink.ask(unix.RTM_GETTFILTER, unix.NLM_F_DUMP, tcHeader(link.Index, 0, Handle, 0))
	if err != nil {
		return nil, err
	}
	var filters []KernelFilter
	for _, body := range answers {
		if f, ok := parseFilter(body); ok {
			filters = append(filters, f)
		}
	}
	return filters, nil
}

// Do carries one operation out.
func (k *Kernel) Do(op Operation) error {
	link, err := k.Link(op.Device)
	if err != nil {
		return err
	}
	kind, flags, body := encode(op, link.Index)
	_, err = k.netlink.ask(kind, flags, body)
	return err
}
