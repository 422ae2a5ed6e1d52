// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"

	"bandwidthbroker/agents/internal/pacer"
	"bandwidthbroker/agents/internal/schedule"
	"bandwidthbroker/agents/internal/tcpsock"
)

// warm prepares the congestion window for the segment that begins at an instant (package pacer says why and how much). It
// sends some bytes of the frame, a segment each, and answers how many, and when to look again: at the latest at begin.
func (t *transmission) warm(now, begin, rateBps int64, frame []byte) (sent int, lookAt int64, err error) {
	info, err := t.link.tcp.Info()
	if err != nil {
		return 0, begin, fmt.Errorf("send: %w", err)
	}
	path := pathOf(info)
	t.makeRoom(rateBps, path)
	if lead := pacer.WarmLead(rateBps, path); begin-now > lead {
		return 0, begin - lead, nil
	}
	if !t.warming {
		// Cubic ends the doubling when acknowledgements come late by an eighth of the round trip, as they do for tiny
		// segments. Reno doubles until something is lost.
		t.warming = true
		if _, err := t.link.tcp.ChooseCongestionControl("reno"); err != nil {
			return 0, begin, fmt.Errorf("send: %w", err)
		}
		if err := t.pace(rateBps); err != nil {
			return 0, begin, err
		}
		t.gauges.applied.Store(0) // nothing is sent by that rate yet
	}
	if info.Snd_cwnd >= info.Snd_ssthresh { // a round trip brings one segment more, not twice as many
		path.Window = max(path.Window, pacer.WindowFor(rateBps, path))
	}
	segments, after := pacer.Warm(rateBps, path, now-t.warmedAt)
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
	for range min(segments, int64(len(frame))-1) {
		n, err := t.link.conn.Write(frame[sent : sent+1])
		if sent += n; err != nil {
			return sent, begin, fmt.Errorf("send: %w", err)
		}
	}
	return sent, min(begin, now+after), nil
}

// warmed ends warming up, if there was any.
func (t *transmission) warmed() error {
	if !t.warming {
		return nil
	}
	t.warming, t.rate = false, 0 // so that it counts as applied
	_, err := t.link.tcp.ChooseCongestionControl(controls...)
	return err
}

// makeRoom lets the kernel keep what a rate has in flight: its own tuning stops at tcp_wmem.
func (t *transmission) makeRoom(rateBps int64, path pacer.Path) {
	need := schedule.Volume(rateBps, path.RTT+path.RTT/4+2*pacer.Queued)
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

func pathOf(info *tcpsock.TCPInfo) pacer.Path {
	return pacer.Path{
		RTT: int64(info.Min_rtt), Packet: int64(info.Snd_mss), Window: int64(info.Snd_cwnd),
		InFlight: int64(info.Unacked), Sent: int64(info.Data_segs_out),
	}
}
