// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/gateway"
)

// order is one line to the control socket.
type order struct {
	Op          string   `json:"op"`
	Direction   string   `json:"direction"`
	CapacityBps *int64   `json:"capacity_bps"`
	DelayUs     *int64   `json:"delay_us"`
	BufferBytes *int64   `json:"buffer_bytes"`
	Loss        *float64 `json:"loss"`
	Protocol    string   `json:"protocol"`
	Port        uint16   `json:"port"`
	Count       int64    `json:"count"`
}

// answer is one line back.
type answer struct {
	OK         bool        `json:"ok"`
	Error      string      `json:"error,omitempty"`
	Statistics *Statistics `json:"statistics,omitempty"`
}

// maxLine bounds one order.
const maxLine = 1 << 16

// Listen serves orders on a unix socket, for its owner alone, until the context ends. A socket that a killed emulator left is replaced.
func (e *Emulator) Listen(ctx context.Context, path string) error {
	if connection, err := net.DialTimeout("unix", path, time.Second); err == nil {
		connection.Close()
		return fmt.Errorf("control socket %s: another emulator listens there", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(path)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return fmt.Errorf("control socket: %w", err)
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go e.serve(ctx, connection)
		}
	}()
	return nil
}

func (e *Emulator) serve(ctx context.Context, connection net.Conn) {
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		text, err := json.Marshal(e.Obey(lines.Bytes()))
		if err != nil {
			return
		}
		if _, err := connection.Write(append(text, '\n')); err != nil {
			return
		}
	}
}

// Obey carries out one order.
func (e *Emulator) Obey(line []byte) any {
	statistics, err := e.obey(line)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{OK: true, Statistics: statistics}
}

func (e *Emulator) obey(line []byte) (*Statistics, error) {
	var o order
	decoder := json.NewDecoder(strings.NewReader(string(line)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("this is no order: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("this is more than one order: one JSON object a line")
	}
	directions, err := e.chosen(o.Direction)
	if err != nil {
		return nil, err
	}
	switch o.Op {
	case "statistics":
		s := e.Statistics()
		return &s, nil
	case "set":
		return nil, o.set(directions)
	case "cut":
		return nil, each(directions, func(d *direction, now int64) { d.link.Cut(now) })
	case "restore":
		return nil, each(directions, func(d *direction, _ int64) { d.link.Restore() })
	case "drop":
		return nil, o.drop(directions)
	}
	return nil, fmt.Errorf("op is %q: want set, cut, restore, drop or statistics", o.Op)
}

func each(directions []*direction, f func(d *direction, now int64)) error {
	for _, d := range directions {
		_ = d.change(func(now int64) error { f(d, now); return nil })
	}
	return nil
}

// set changes what is given, in all directions or in none.
func (o *order) set(directions []*direction) error {
	if o.CapacityBps == nil && o.DelayUs == nil && o.BufferBytes == nil && o.Loss == nil {
		return errors.New("set wants capacity_bps, delay_us, buffer_bytes or loss")
	}
	for _, d := range directions {
		d.mu.Lock()
		wanted, err := o.applied(d.link.Settings())
		d.mu.Unlock()
		if err == nil {
			err = wanted.Check()
		}
		if err != nil {
			return err
		}
	}
	for _, d := range directions {
		err := d.change(func(now int64) error {
			wanted, err := o.applied(d.link.Settings())
			if err != nil {
				return err
			}
			return d.link.Set(now, wanted)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *order) applied(s gateway.Settings) (gateway.Settings, error) {
	if o.CapacityBps != nil {
		s.CapacityBps = *o.CapacityBps
	}
	if o.DelayUs != nil {
		if *o.DelayUs < 0 || *o.DelayUs > gateway.MaxDelay/1000 {
			return s, fmt.Errorf("delay_us is %d: want 0 to %d", *o.DelayUs, gateway.MaxDelay/1000)
		}
		s.Delay = *o.DelayUs * 1000
	}
	if o.BufferBytes != nil {
		s.Buffer = *o.BufferBytes
	}
	if o.Loss != nil {
		loss, err := Share(*o.Loss)
		if err != nil {
			return s, err
		}
		s.Loss = loss
	}
	return s, nil
}

// Share turns a loss of 0 to 1 into parts of a billion.
func Share(loss float64) (int64, error) {
	if !(loss >= 0 && loss <= 1) {
		return 0, fmt.Errorf("loss is %v: want a share of all packets, 0 to 1", loss)
	}
	return int64(math.Round(loss * gateway.Billion)), nil
}

// drop replaces the orders of before in these directions.
func (o *order) drop(directions []*direction) error {
	if o.Count < 0 {
		return fmt.Errorf("count is %d: want how many packets are to be lost", o.Count)
	}
	protocols := map[string]uint8{"": 0, "tcp": gateway.ProtocolTCP, "udp": gateway.ProtocolUDP}
	protocol, known := protocols[o.Protocol]
	if !known {
		return fmt.Errorf("protocol is %q: want tcp, udp or none for all", o.Protocol)
	}
	return each(directions, func(d *direction, _ int64) {
		d.drops = []gateway.Drop{{Protocol: protocol, Port: o.Port, Left: o.Count}}
	})
}
