// SPDX-License-Identifier: Apache-2.0

// Package tun makes TUN devices in network namespaces and moves packets through them. A device lives as long as the process that
// made it, so nothing is left behind, not even after kill -9.
package tun

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Device is one TUN device, without further header: a read gives one IP packet, a write takes one.
type Device struct {
	Name string
	fd   int
	// counters is /proc/net/dev of the device's own namespace.
	counters int
}

// queue is how many packets the kernel may hold for us: at 1 Gb/s of 1500 bytes some 200 ms of not being scheduled.
const queue = 16384

// Open makes the device in a network namespace (a name that `ip netns` knows, a path, or "" for our own), sets its MTU, and
// brings it up.
func Open(namespace, name string, mtu int) (*Device, error) {
	type result struct {
		device *Device
		err    error
	}
	made := make(chan result)
	go func() {
		// The thread enters the namespace and is thrown away with it: the goroutine ends without unlocking it.
		runtime.LockOSThread()
		if namespace == "" {
			defer runtime.UnlockOSThread()
		} else if err := enter(namespace); err != nil {
			made <- result{nil, err}
			return
		}
		device, err := open(name, mtu)
		made <- result{device, err}
	}()
	r := <-made
	return r.device, r.err
}

func enter(namespace string) error {
	path := namespace
	if !strings.Contains(path, "/") {
		path = filepath.Join("/var/run/netns", namespace)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w (`ip netns list` shows those there are)", namespace, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("network namespace %s cannot be entered: %w (this needs root, CAP_SYS_ADMIN)", namespace, err)
	}
	return nil
}

func open(name string, mtu int) (*Device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w (the kernel module is tun)", err)
	}
	d := &Device{Name: name, fd: fd, counters: -1}
	if err := d.configure(mtu); err != nil {
		d.Close()
		return nil, fmt.Errorf("TUN device %s: %w", name, err)
	}
	return d, nil
}

func (d *Device) configure(mtu int) error {
	request, err := unix.NewIfreq(d.Name)
	if err != nil {
		return errors.New("a device's name has 1 to 15 characters")
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(d.fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("%w (this needs root, CAP_NET_ADMIN, and a name that is free)", err)
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(control)
	for _, step := range []struct {
		what    string
		request uint
		value   int32
	}{{"MTU", unix.SIOCSIFMTU, int32(mtu)}, {"queue length", unix.SIOCSIFTXQLEN, queue}} {
		r, _ := unix.NewIfreq(d.Name)
		r.SetUint32(uint32(step.value))
		if err := unix.IoctlIfreq(control, step.request, r); err != nil {
			return fmt.Errorf("%s %d: %w", step.what, step.value, err)
		}
	}
	up, _ := unix.NewIfreq(d.Name)
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(control, unix.SIOCSIFFLAGS, up); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	d.counters, err = unix.Open("/proc/thread-self/net/dev", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return err
}

// Close removes the device.
func (d *Device) Close() {
	unix.Close(d.fd)
	if d.counters >= 0 {
		unix.Close(d.counters)
	}
}

// Descriptor to poll.
func (d *Device) Descriptor() int { return d.fd }

// Read takes one packet; ok is false when there is none. It never waits, so it does not tell Go's scheduler either.
func (d *Device) Read(into []byte) (n int, ok bool, err error) {
	for {
		n, _, failed := unix.RawSyscall(unix.SYS_READ, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)))
		switch failed {
		case 0:
			return int(n), true, nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, false, nil
		default:
			return 0, false, os.NewSyscallError("read", failed)
		}
	}
}

// Write gives one packet to the kernel, which carries it to its receiver's socket before it returns.
func (d *Device) Write(packet []byte) error {
	for {
		_, _, failed := unix.RawSyscall(unix.SYS_WRITE, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(packet))), uintptr(len(packet)))
		switch failed {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return os.NewSyscallError("write", failed)
		}
	}
}

// Overrun is how many packets the kernel threw away because its queue towards us was full: they were lost before the link.
func (d *Device) Overrun() (int64, error) {
	text := make([]byte, 1<<16)
	n, err := unix.Pread(d.counters, text, 0)
	if err != nil {
		return 0, err
	}
	return overrun(string(text[:n]), d.Name)
}

// overrun finds the twelfth number of a device's line: transmitted packets that were dropped.
func overrun(table, name string) (int64, error) {
	for line := range strings.Lines(table) {
		device, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		if fields := strings.Fields(numbers); device == name && len(fields) >= 12 {
			return strconv.ParseInt(fields[11], 10, 64)
		}
	}
	return 0, fmt.Errorf("device %s is gone", name)
}
