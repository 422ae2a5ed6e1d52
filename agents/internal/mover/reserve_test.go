// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/served"
)

// small has the pair receive onto a file system of its own.
func (p *pair) small(size string) {
	p.t.Helper()
	if err := unix.Mount("tmpfs", p.receive, "tmpfs", 0, "size="+size); err != nil {
		p.t.Skipf("SKIPPED, a small disk was not tried: mounting a tmpfs: %v", err)
	}
	p.t.Cleanup(func() { _ = unix.Unmount(p.receive, unix.MNT_DETACH) })
	var err error
	if p.receiving, err = served.Open(p.receive); err != nil {
		p.t.Fatal(err)
	}
}

// held is what the unfinished files of the receiver take of the disk.
func (p *pair) held() (bytes int64) {
	p.t.Helper()
	entries, _ := os.ReadDir(p.receive)
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(p.receive, e.Name())); err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
	}
	return bytes
}

func (p *pair) begins(in time.Duration) {
	now := time.Now().Add(in).UnixMicro()
	p.orders.Revision++
	p.orders.Segments = []schedule.Segment{{Begin: now, End: now + 60_000_000, RateBps: 1_000_000_000}}
}

// A transfer holds disk space from its start on: not when it is booked for a week ahead, and no longer when it is postponed to then.
func TestSpaceIsHeldWhenATransferBegins(t *testing.T) {
	p := newPair(t, 3<<20)
	p.small("4m")
	p.begins(6 * 24 * time.Hour)
	p.receiver()
	s := p.sender()
	update := func(in time.Duration) {
		p.begins(in)
		o := p.orders
		o.Send = true
		s.Update(o)
	}
	if p.held() != 0 {
		t.Errorf("%d bytes are held a week ahead", p.held())
	}
	update(1500 * time.Millisecond)
	waitFor(t, "the space is held", func() bool { return p.held() >= 3<<20 })
	update(6 * 24 * time.Hour)
	waitFor(t, "it is given back", func() bool { return p.held() == 0 })
	update(0)
	p.sent.wait(t, "sent")
	p.received.wait(t, "finished")
	p.same()
}

// Of two that begin together and do not fit together, one is refused before its first byte.
func TestTheSameSpaceIsNotPromisedTwice(t *testing.T) {
	p := newPair(t, 3<<20)
	p.small("4m")
	p.begins(1500 * time.Millisecond)
	p.receiver()
	second, err := agentstate.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other := &pair{
		t: t, serve: p.serve, receive: p.receive, state: second, listener: p.listener, orders: p.orders, sent: newOutbox(), received: newOutbox(),
		serving: p.serving, receiving: p.receiving, log: p.log,
	}
	other.orders.Transfer = "tr_2"
	r := StartReceiver(ReceiverOptions{Folder: p.receiving, State: second, Outbox: other.received, Log: p.log}, func() Orders {
		o := other.orders
		o.Path = "y"
		return o
	}(), "")
	p.listener.Expect("tr_2", r)
	t.Cleanup(func() { r.Stop(false) })
	p.sender()
	waitFor(t, "the first holds its space", func() bool { return p.held() >= 3<<20 })
	other.sender()
	other.sent.wait(t, "failed "+failure.DiskFull)
	p.sent.wait(t, "sent")
	p.same()
}
