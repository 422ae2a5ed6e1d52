// SPDX-License-Identifier: Apache-2.0

// Package tctest is a kernel's traffic control that is made up: as strict as the real one, with a log of what was asked.
package tctest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/tclinux"
)

// Kernel has some devices.
type Kernel struct {
	mu      sync.Mutex
	Log     []string              // operations carried out, as tc commands
	Routes  map[netip.Addr]string // address to device
	Missing map[string]error      // kinds of qdisc that Probe does not find, with the answer
	devices map[string]*device
	crash   int // operations until everything fails; negative: never
	locked  bool
}

type device struct {
	root    tclinux.Qdisc
	classes []tclinux.KernelClass
	filters []tclinux.KernelFilter
	handles uint32
}

// ErrCrash is what operations return after CrashAfter.
var ErrCrash = errors.New("crashed")

// New makes a kernel with devices that have the qdisc of its choice.
func New(devices ...string) *Kernel {
	k := &Kernel{Routes: map[netip.Addr]string{}, Missing: map[string]error{}, devices: map[string]*device{}, crash: -1}
	for _, name := range devices {
		k.SetRoot(tclinux.Qdisc{Device: name, Kind: "pfifo_fast"})
	}
	return k
}

// SetRoute makes packets to an address leave by a device; "": by none.
func (k *Kernel) SetRoute(to netip.Addr, device string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if device == "" {
		delete(k.Routes, to)
		return
	}
	k.Routes[to] = device
}

// SetRoot makes somebody configure a device.
func (k *Kernel) SetRoot(q tclinux.Qdisc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.devices[q.Device] = &device{root: q}
}

// CrashAfter lets n more operations succeed; negative: all.
func (k *Kernel) CrashAfter(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crash = n
}

// Restart is what a new process finds: the same kernel, unlocked.
func (k *Kernel) Restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crash, k.locked = -1, false
}

// Send has packets leave by a class.
func (k *Kernel) Send(name string, minor uint16, bytes, packets uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.devices[name].classes {
		if c.Minor == minor {
			k.devices[name].classes[i].Bytes += bytes
			k.devices[name].classes[i].Packets += packets
		}
	}
}

// State is everything there is, as text.
func (k *Kernel) State() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var lines []string
	for name, d := range k.devices {
		lines = append(lines, fmt.Sprintf("%s %s %x:", name, d.root.Kind, d.root.Handle>>16))
		for _, c := range d.classes {
			lines = append(lines, fmt.Sprintf("%s class %x %s", name, c.Minor, c.Shape))
		}
		for _, f := range d.filters {
			lines = append(lines, fmt.Sprintf("%s filter %s", name, f.Filter))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Lock is held until Restart or Close.
func (k *Kernel) Lock() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return errors.New("locked")
	}
	k.locked = true
	return nil
}

// Close unlocks.
func (k *Kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.locked = false
	return nil
}

// Tick is that of a kernel with good timers.
func (k *Kernel) Tick() time.Duration { return time.Millisecond }

// Timestamps are on.
func (k *Kernel) Timestamps() bool { return true }

// Owe makes a class owe so much time.
func (k *Kernel) Owe(name string, minor uint16, debt time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.devices[name].classes {
		if c.Minor == minor {
			k.devices[name].classes[i].Debt = debt
		}
	}
}

// Probe returns what Missing says.
func (k *Kernel) Probe(kind string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Missing[kind]
}

// Route looks the address up.
func (k *Kernel) Route(to netip.Addr) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, found := k.Routes[to]; found {
		return name, nil
	}
	return "", errors.New("network is unreachable")
}

// Link is an Ethernet device.
func (k *Kernel) Link(name string) (tclinux.Link, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.devices[name] == nil {
		return tclinux.Link{}, fmt.Errorf("no device %q", name)
	}
	return tclinux.Link{Name: name, Index: 1, MTU: 1500, Header: 14}, nil
}

// Roots of all devices.
func (k *Kernel) Roots() ([]tclinux.Qdisc, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var roots []tclinux.Qdisc
	for _, d := range k.devices {
		roots = append(roots, d.root)
	}
	return roots, nil
}

// Classes of a device.
func (k *Kernel) Classes(name string) ([]tclinux.KernelClass, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.devices[name].classes), nil
}

// Filters of a device.
func (k *Kernel) Filters(name string) ([]tclinux.KernelFilter, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.devices[name].filters), nil
}

// Do refuses what the kernel refuses, and also filters to classes that do not exist.
func (k *Kernel) Do(op tclinux.Operation) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.crash == 0 {
		return ErrCrash
	}
	d := k.devices[op.Device]
	if d == nil {
		return fmt.Errorf("no device %q", op.Device)
	}
	var err error
	switch {
	case op.Class != nil:
		err = d.class(op)
	case op.Filter != nil:
		err = d.filter(op)
	default:
		err = d.qdisc(op)
	}
	if err == nil {
		k.crash--
		k.Log = append(k.Log, op.String())
	}
	return err
}

func (d *device) qdisc(op tclinux.Operation) error {
	switch {
	case op.Verb == tclinux.Add && d.root.Handle != 0:
		return errors.New("exclusivity flag on, cannot modify")
	case op.Verb == tclinux.Add:
		d.root = tclinux.Qdisc{Device: op.Device, Kind: op.Kind, Handle: tclinux.Handle}
		if op.Kind == "htb" {
			d.root.Marker = tclinux.Marker
		}
	case d.root.Handle != tclinux.Handle:
		return errors.New("no such qdisc")
	default:
		*d = device{root: tclinux.Qdisc{Device: op.Device, Kind: "pfifo_fast"}}
	}
	return nil
}

func (d *device) class(op tclinux.Operation) error {
	at := slices.IndexFunc(d.classes, func(c tclinux.KernelClass) bool { return c.Minor == op.Class.Minor })
	switch {
	case d.root.Handle != tclinux.Handle || d.root.Kind != "htb":
		return errors.New("failed to find specified qdisc")
	case op.Verb == tclinux.Add && at >= 0:
		return errors.New("file exists")
	case op.Verb == tclinux.Add:
		d.classes = append(d.classes, *op.Class)
	case at < 0:
		return errors.New("no such class")
	case op.Verb == tclinux.Change:
		d.classes[at].Shape = op.Class.Shape
	case slices.ContainsFunc(d.filters, func(f tclinux.KernelFilter) bool { return f.Minor == op.Class.Minor }):
		return errors.New("device or resource busy")
	default:
		d.classes = slices.Delete(d.classes, at, at+1)
	}
	return nil
}

func (d *device) filter(op tclinux.Operation) error {
	if op.Verb == tclinux.Add {
		if !slices.ContainsFunc(d.classes, func(c tclinux.KernelClass) bool { return c.Minor == op.Filter.Minor }) {
			return errors.New("no such class")
		}
		d.handles++
		d.filters = append(d.filters, tclinux.KernelFilter{Filter: op.Filter.Filter, Handle: 0x800<<20 | d.handles})
		return nil
	}
	at := slices.IndexFunc(d.filters, func(f tclinux.KernelFilter) bool { return f.Handle == op.Filter.Handle })
	if at < 0 {
		return errors.New("no such filter")
	}
	d.filters = slices.Delete(d.filters, at, at+1)
	return nil
}
