// SPDX-License-Identifier: Apache-2.0

package tun

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
bwb-left: 1 2 3 4 5 6 7 8 9 10 11 4711 13 14 15 16
bwb-l:    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
`

func TestOverrun(t *testing.T) {
	for name, want := range map[string]int64{"bwb-left": 4711, "bwb-l": 12, "lo": 0} {
		if got, err := overrun(table, name); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", name, got, err, want)
		}
	}
	if _, err := overrun(table, "bwb"); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("a device that is not there: %v", err)
	}
}

// FuzzOverrun: no table makes it panic.
func FuzzOverrun(f *testing.F) {
	f.Add(table, "lo")
	f.Add("lo:1 2 3", "lo")
	f.Fuzz(func(t *testing.T, text, name string) { _, _ = overrun(text, name) })
}

func TestMistakesAreExplained(t *testing.T) {
	for want, where := range map[string][2]string{
		"`ip netns list`":   {"nosuch", "bwbgwt0"},
		"no such file":      {"/nosuch/net", "bwbgwt0"},
		"1 to 15 charact":   {"", "a-name-that-is-too-long"},
		"cannot be entered": {"/dev/null", "bwbgwt0"},
	} {
		d, err := Open(where[0], where[1], 1500)
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "/dev/net/tun") {
			t.Errorf("%v: %v, want %q", where, err, want)
		}
	}
}

// BenchmarkWrite is what a packet of 1500 bytes costs that the kernel throws away at once: the device's own share.
func BenchmarkWrite(b *testing.B) {
	d := inNamespaceOfItsOwn(b)
	packet := make([]byte, 1500)
	copy(packet, []byte{0x45, 0, 1500 >> 8, 1500 & 0xff, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2})
	b.SetBytes(int64(len(packet)))
	for b.Loop() {
		if err := d.Write(packet); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadNothing is what looking at an idle device costs.
func BenchmarkReadNothing(b *testing.B) {
	d := inNamespaceOfItsOwn(b)
	packet := make([]byte, 1500)
	for b.Loop() {
		if _, _, err := d.Read(packet); err != nil {
			b.Fatal(err)
		}
	}
}

func inNamespaceOfItsOwn(b *testing.B) *Device {
	b.Helper()
	type result struct {
		device *Device
		err    error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread goes with the goroutine, the namespace stays with the device
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- result{nil, err}
			return
		}
		device, err := open("bwbgwt", 1500)
		made <- result{device, err}
	}()
	r := <-made
	if r.err != nil {
		b.Skipf("NOT SHOWN HERE: needs a namespace and a TUN device (%v); run as root", r.err)
	}
	b.Cleanup(r.device.Close)
	return r.device
}
