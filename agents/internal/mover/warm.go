// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"

	"bandwidthbroker/agents/internal/pacing"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tcpsock"
)

// warm prepares the congestion window for the segment that begins at an instant (package pacer says why and how much). It
// sends some bytes of the frame, a segment each, and returns how many, and when to look again: at the latest at begin.
func (t *transmission) warm(now, begin, rateBps int64, frame []byte) (sent int, lookAt int64, err error) {
	info, err := t.link.tcp.Info()
	if err != nil {
		return 0, begin, fmt.Errorf("send: %w", err)
	}
	path := pathOf(info)
	t.makeRoom(rateBps, path)
	if lead := pacing.WarmLead(rateBps, shrunk(path, info, begin-now)); begin-now > lead {
		return 0, begin - lead, nil
	}
	if !t.warming {
		t.warming = true
		if err := t.pace(rateBps); err != nil {
			return 0, begin, err
		}
		t.gauges.applied.Store(0) // nothing is sent by that rate yet
	}
	if info.Snd_cwnd >= info.Snd_ssthresh { // a round trip brings one segment more, not twice as many
		path.Window = max(path.Window, pacing.WindowFor(rateBps, path))
	}
	segments, after := pacing.Warm(rateBps, path, now-t.warmedAt)
	t.warmedAt = now
	if after == 0 {
		// The window shrinks when nothing was sent for a retransmission time-out; while the start is waited for, a byte
		// now and then shows how wide it is.
		after = int64(info.Rto) / 2
		if idle := int64(info.Last_data_sent) * 1000; idle >= after {
			segments = 1
		} else {
			after -= idle
		}
	}
	sent, err = t.singly(frame, segments)
	return sent, min(begin, now+after), err
}

// singly writes some bytes of a frame, but never its last one, a segment each.
func (t *transmission) singly(frame []byte, segments int64) (sent int, err error) {
	for range min(segments, int64(len(frame))-1) {
		n, err := t.link.conn.Write(frame[sent : sent+1])
		if sent += n; err != nil {
			return sent, fmt.Errorf("send: %w", err)
		}
	}
	return sent, nil
}

const (
	// riseAhead is how long before a step up it is first thought of: longer than any warming up.
	riseAhead int64 = 3_000_000 // µs
	riseEvery int64 = 1_000     // µs
	riseIdle  int64 = 50_000    // µs between looks before warming up begins
)

// rise prepares the congestion window for a step up of a rate that is being sent at: a window that is not used is not kept,
// and does not grow. It returns how many bytes of the frame left singly, and by when to look again.
func (t *transmission) rise(now int64, frame []byte) (sent int, lookAt int64, err error) {
	at, rateBps, ok := t.pacer.NextRise(now)
	if !ok || at-now > riseAhead {
		t.risen = 0
		return 0, schedule.Forever, nil
	}
	if now < t.riseAt {
		return 0, t.riseAt, nil
	}
	info, err := t.link.tcp.Info()
	if err != nil {
		return 0, at, fmt.Errorf("send: %w", err)
	}
	path := pathOf(info)
	t.makeRoom(rateBps, path)
	t.riseAt = now + riseIdle
	want := pacing.WindowFor(rateBps, path)
	// What is in flight keeps twice its window by itself. After a loss the window no longer doubles.
	if path.Window >= want || info.Snd_cwnd >= info.Snd_ssthresh || t.risen > want {
		return 0, t.riseAt, nil
	}
	if lead := pacing.WarmLead(rateBps, path) + pacing.Queued; at-now > lead {
		t.riseAt = min(t.riseAt, at-lead)
		return 0, t.riseAt, nil
	}
	segments, _ := pacing.Warm(rateBps, path, now-t.warmedAt)
	t.warmedAt, t.riseAt = now, now+riseEvery
	sent, err = t.singly(frame, segments)
	t.risen += int64(sent)
	return sent, t.riseAt, err
}

// warmed ends warming up, if there was any.
func (t *transmission) warmed() {
	if t.warming {
		t.warming, t.rate = false, 0 // so that it counts as applied
	}
}

// makeRoom lets the kernel keep what a rate has in flight: its own tuning stops at tcp_wmem.
func (t *transmission) makeRoom(rateBps int64, path pacing.Path) {
	need := schedule.Volume(rateBps, path.RTT+path.RTT/4+2*pacing.Queued)
	if need <= t.room {
		return
	}
	room, err := t.link.tcp.Need(need)
	if err != nil || room < need {
		t.log.Warn("the kernel keeps less than the booked rate has in flight: raise net.ipv4.tcp_wmem or net.core.wmem_max",
			"rate_bps", rateBps, "rtt_us", path.RTT, "need_bytes", need, "has_bytes", room, "error", err)
	}
	t.room = need
}

// shrunk is a path as it will be after so many microseconds more without data: the kernel halves the window for every
// retransmission time-out that nothing was sent, down to the first ten segments, and says so only when something is sent.
func shrunk(path pacing.Path, info *tcpsock.TCPInfo, idle int64) pacing.Path {
	idle += int64(info.Last_data_sent) * 1000
	path.Window = max(min(path.Window, 10), path.Window>>min(idle/max(int64(info.Rto), 1), 30))
	return path
}

func pathOf(info *tcpsock.TCPInfo) pacing.Path {
	return pacing.Path{
		RTT: int64(info.Min_rtt), Packet: int64(info.Snd_mss), Window: int64(info.Snd_cwnd),
		InFlight: int64(info.Unacked), Sent: int64(info.Data_segs_out),
	}
}
