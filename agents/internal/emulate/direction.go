// SPDX-License-Identifier: Apache-2.0

// Package emulate carries packets between two TUN devices over a link that exists only as arithmetic (package gateway), in real
// time, and measures how well it does that.
package emulate

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/gateway"
	"bandwidthbroker/agents/internal/tun"
)

const (
	// batch is how many packets are read, or written, before it is the other's turn: enough to make the rest cheap, little
	// enough that none waits for long (some 50 µs).
	batch = 32
	// store is the first size of a direction's memory for packets: 1 Gb/s for 30 ms.
	store = 4 << 20
	// busyFor is how long after a packet another one is expected (ns): after that the kernel wakes us.
	busyFor = 2_000_000
)

// direction is one of the two: everything between reading a device and writing the other, in one thread.
type direction struct {
	name     string
	from, to *tun.Device
	mtu      int
	spin     time.Duration
	moderate time.Duration
	since    time.Time // 0 of all ns below

	mu    sync.Mutex // held for a batch at a time; control takes it between two
	link  *gateway.Link
	store *gateway.Store
	flows flows
	ticks ticks
	count Counters
	drops []gateway.Drop
	late  gateway.Lateness // delivery, after it was due
	look  gateway.Lateness // how long a packet may have waited to be read, while this thread was busy or not scheduled

	took   int64 // the last time when a packet was read
	looked int64 // the last time when there was nothing to read, or we were woken
	empty  int64 // the last time when there was nothing to read
	wake   int   // eventfd
	thread atomic.Int64
	done   atomic.Bool

	processor, runQueue int64 // of the thread, in µs; set when it ends
}

func (d *direction) now() int64 { return int64(time.Since(d.since)) }

// run carries packets until stop. The thread is its own: the scheduler must not move it, and its timer slack is its own, too.
func (d *direction) run() error {
	runtime.LockOSThread() // and never unlocked: no other goroutine shall inherit the timer slack
	d.thread.Store(int64(unix.Gettid()))
	defer d.leave()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	d.looked = d.now()
	for !d.done.Load() {
		d.mu.Lock()
		delivered := d.deliver()
		taken, err := d.take()
		next := d.link.Next()
		d.mu.Unlock()
		if err != nil {
			return err
		}
		if !delivered && !taken {
			d.wait(next)
		}
	}
	return nil
}

// leave keeps what the kernel knows of the thread beyond its end.
func (d *direction) leave() {
	processor, runQueue := scheduled(d.thread.Load())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.thread.Store(0)
	d.processor, d.runQueue = processor, runQueue
}

// deliver writes what is due, up to a batch; true when there may be more.
func (d *direction) deliver() bool {
	for range batch {
		now := d.now()
		packet, ok := d.link.Pop(now)
		if !ok {
			return false
		}
		size := d.link.WireBytes(packet.Length)
		if packet.Fate == gateway.Forwarded {
			d.late.Add(now - packet.Due)
			if err := d.to.Write(d.store.Front(packet.Length)); err != nil {
				d.count.Refused++
				d.count.refusal = err
			}
		}
		d.store.Release(packet.Length)
		d.count.of(packet.Fate).add(size)
		d.ticks.ended(packet, size)
	}
	return true
}

// take reads what has arrived, up to a batch; true when there may be more.
func (d *direction) take() (bool, error) {
	for range batch {
		room := d.store.Room(d.mtu)
		length, ok, err := d.from.Read(room)
		if err != nil {
			return false, fmt.Errorf("%s: %w", d.from.Name, err)
		}
		now := d.now()
		if !ok {
			d.looked, d.empty = now, now
			return false, nil
		}
		d.look.Add(now - d.looked)
		d.took = now
		d.offer(now, room[:length])
	}
	return true, nil
}

func (d *direction) offer(now int64, packet []byte) {
	flow, number := d.flows.find(packet)
	size := d.link.WireBytes(len(packet))
	d.count.Offered.add(size)
	d.ticks.offered(now, number, size, now-d.empty)
	fate := gateway.Ordered
	if !d.ordered(flow) {
		fate = d.link.Offer(now, len(packet), number)
	}
	if fate == gateway.Forwarded {
		d.store.Keep(len(packet))
		waiting := d.link.Queued(now)
		d.count.QueueMax = max(d.count.QueueMax, waiting)
		d.ticks.queued(now, waiting)
		return
	}
	d.count.of(fate).add(size)
	d.ticks.dropped(now, number, size)
}

func (d *direction) ordered(flow gateway.Flow) bool {
	for i := range d.drops {
		if d.drops[i].Takes(flow) {
			return true
		}
	}
	return false
}

// wait until there is something to read, something due, or news from control. The kernel's timer is some µs late; short waits, and
// the end of long ones, are spent looking at the clock and the device. With moderation it looks now and then while packets come and go,
// and takes all that are there, as a network card does that moderates its interrupts: waking up for each is most of its work.
func (d *direction) wait(next int64) {
	now := d.now()
	if next <= now+int64(d.spin) {
		return
	}
	if d.moderate > 0 && (next != gateway.Never || now-d.took < busyFor) {
		nap := unix.NsecToTimespec(int64(d.moderate))
		_ = unix.Nanosleep(&nap, nil)
		return
	}
	var timeout *unix.Timespec
	if next != gateway.Never {
		t := unix.NsecToTimespec(next - now - int64(d.spin))
		timeout = &t
	}
	polled := [2]unix.PollFd{{Fd: int32(d.from.Descriptor()), Events: unix.POLLIN}, {Fd: int32(d.wake), Events: unix.POLLIN}}
	_, _ = unix.Ppoll(polled[:], timeout, nil)
	if polled[1].Revents != 0 {
		var drained [8]byte
		_, _ = unix.Read(d.wake, drained[:])
	}
	// Whatever arrived while we slept has just woken us: how long that took shows in what was due meanwhile.
	d.looked = d.now()
}

// change lets f work on the link between two batches, and has the thread look at it anew.
func (d *direction) change(f func(now int64) error) error {
	d.mu.Lock()
	err := f(d.now())
	d.mu.Unlock()
	d.nudge()
	return err
}

func (d *direction) nudge() {
	one := [8]byte{1}
	_, _ = unix.Write(d.wake, one[:])
}

func (d *direction) stop() {
	d.done.Store(true)
	d.nudge()
}
