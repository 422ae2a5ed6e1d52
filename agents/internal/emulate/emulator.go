// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bandwidthbroker/agents/internal/gateway"
	"bandwidthbroker/agents/internal/tun"
)

// Names of the directions.
const (
	LeftRight = "left-right"
	RightLeft = "right-left"
)

// End is where one side of the link comes out.
type End struct{ Namespace, Device string }

// Options of an emulator.
type Options struct {
	Left, Right End
	MTU         int
	Link        gateway.Settings // both directions
	Framing     int64
	Seed        uint64
	Trace       string // file; "" for none
	Spin        time.Duration
	Moderate    time.Duration // while packets come and go, look no more often than this; 0: for each of them
	Realtime    Realtime
}

// Emulator is a link between two devices.
type Emulator struct {
	options    Options
	since      time.Time
	directions [2]*direction
	devices    [2]*tun.Device
	trace      *trace
	realtime   bool
}

// New makes the devices, and the link between them. It carries nothing before Run.
func New(o Options) (*Emulator, error) {
	e := &Emulator{options: o, since: time.Now()}
	if err := e.open(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Emulator) open() (err error) {
	if e.options.MTU < 68 || e.options.MTU > 65535 {
		return fmt.Errorf("MTU is %d bytes: want 68 to 65535", e.options.MTU)
	}
	switch e.options.Realtime {
	case Ordinary, IfAllowed, Required:
	default:
		return fmt.Errorf("realtime is %q: want yes, no or try", e.options.Realtime)
	}
	if e.options.Trace != "" {
		if e.trace, err = newTrace(e.options.Trace, e.since.UnixMicro()); err != nil {
			return err
		}
	}
	for i, name := range []string{LeftRight, RightLeft} {
		d := &direction{
			name: name, mtu: e.options.MTU, spin: e.options.Spin, moderate: e.options.Moderate, since: e.since,
			store: gateway.NewStore(store), flows: newFlows(),
		}
		if d.link, err = gateway.NewLink(e.options.Link, e.options.Framing, e.options.Seed, uint64(i)); err != nil {
			return err
		}
		if d.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return err
		}
		if e.trace != nil {
			d.ticks.write = e.trace.writer(name, &d.flows)
		}
		e.directions[i] = d
	}
	if e.realtime, err = e.options.Realtime.apply(); err != nil {
		return err
	}
	for i, end := range []End{e.options.Left, e.options.Right} {
		if e.devices[i], err = tun.Open(end.Namespace, end.Device, e.options.MTU); err != nil {
			return err
		}
	}
	for i, d := range e.directions {
		d.from, d.to = e.devices[i], e.devices[1-i]
	}
	return nil
}

// Close removes the devices.
func (e *Emulator) Close() {
	for _, d := range e.directions {
		if d != nil {
			unix.Close(d.wake)
		}
	}
	for _, device := range e.devices {
		if device != nil {
			device.Close()
		}
	}
}

// Run carries packets until the context ends, or a device fails. The trace is complete when it returns.
func (e *Emulator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, d := range e.directions {
		running.Go(func() {
			if err := d.run(); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() { e.keepTrace(ctx) })
	<-ctx.Done()
	for _, d := range e.directions {
		d.stop()
	}
	running.Wait()
	var failed error
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		failed = cause
	}
	if e.trace != nil {
		for _, d := range e.directions {
			d.ticks.flush()
		}
		failed = errors.Join(failed, e.trace.close())
	}
	return failed
}

// keepTrace hands over the ticks of a direction in which nothing moves any more, and writes.
func (e *Emulator) keepTrace(ctx context.Context) {
	if e.trace == nil {
		return
	}
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		for _, d := range e.directions {
			d.mu.Lock()
			d.ticks.at(d.now())
			d.mu.Unlock()
		}
		e.trace.save()
	}
}

// chosen are the directions that a name means.
func (e *Emulator) chosen(name string) ([]*direction, error) {
	switch name {
	case "", "both":
		return e.directions[:], nil
	case LeftRight:
		return e.directions[:1], nil
	case RightLeft:
		return e.directions[1:], nil
	}
	return nil, fmt.Errorf("direction is %q: want %s, %s or both", name, LeftRight, RightLeft)
}
