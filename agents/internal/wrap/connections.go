// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"errors"
	"net/netip"
	"os"

	"bandwidthbroker/agents/internal/flows"
	"bandwidthbroker/agents/internal/pacing"
)

// admit has the loop take a connection before it is made. It is called by the goroutine that answers the filter.
func (s *Supervisor) admit(c connecting) {
	a := admission{c, make(chan struct{})}
	select {
	case s.admissions <- a:
		<-a.done
	case <-s.gone:
	}
}

// take holds a socket that is about to connect, if its connection belongs to the transfer.
func (s *Supervisor) take(a admission) {
	defer close(a.done)
	if a.to.IsValid() && !s.Choice.takes(netip.AddrPort{}, a.to) {
		return
	}
	socket, err := flows.Grab(a.pid, a.fd)
	if errors.Is(err, flows.ErrNotTCP) {
		return
	}
	if err != nil {
		s.warn("A CONNECTION OF PROCESS %d CANNOT BE PACED: %v", a.pid, err)
		return
	}
	if !a.to.IsValid() && !s.Choice.takes(socket.Local(), socket.Remote()) {
		socket.Close() // the scan will see where it goes
		return
	}
	if _, known := s.streams[socket.Inode()]; known {
		socket.Close()
		return
	}
	if _, err := socket.AvoidBBR(); err != nil {
		s.warn("congestion control: %v", err)
	}
	s.hold(socket, flows.Descriptor{PID: a.pid, FD: a.fd, Inode: socket.Inode()}, a.to, false)
	s.pace(s.Client.Now())
}

// hold adds a stream. inherited: it was there before the command began, and what it had sent is not the command's.
func (s *Supervisor) hold(socket *flows.Socket, holder flows.Descriptor, to netip.AddrPort, inherited bool) {
	now := s.Client.Now()
	st := &stream{socket: socket, holder: holder, found: now, at: now, moved: now}
	if inherited {
		st.base, _ = socket.Counts()
		st.counts = st.base
	}
	limiter := s.limiter(holder.Inode, to)
	if err := limiter.Attach(socket); err != nil {
		s.warn("A CONNECTION CANNOT BE PACED: %v", err)
		socket.Close()
		s.passed[holder.Inode] = true
		return
	}
	s.streams[holder.Inode], s.limits[holder.Inode] = st, limiter
	delete(s.passed, holder.Inode)
}

// limiter is what holds a new connection: this process by pacing, or the daemon.
func (s *Supervisor) limiter(inode uint64, to netip.AddrPort) pacing.Limiter {
	if s.handsOver() {
		return &handedOver{Limiter: s.Limiter(), client: s.Client, inode: inode, to: to.String(), first: max(s.applied/until, slowest)}
	}
	return s.Limiter()
}

// until is the share (1/until) at which a connection begins that is on its way to the daemon: how many there
// will be is unknown, and once the daemon has it, the daemon sets its rate.
const until = 8

func (s *Supervisor) handsOver() bool { return s.orders.Remote && !s.deserted }

// remote has the daemon hold all connections to a rate. A daemon that was started anew gets them again; where its
// mechanism fails, this process paces by itself: never unlimited by surprise.
func (s *Supervisor) remote(total int64) {
	if joined := s.Client.Joined(); joined != s.joined && s.Client.Connected() {
		s.joined = joined
		for inode, st := range s.streams {
			if h, ok := s.limits[inode].(*handedOver); ok {
				h.give(st.socket)
			}
		}
	}
	if rate, ok := s.Client.Held(); ok && rate.Error != "" {
		s.warn("THE AGENT CANNOT HOLD THE CONNECTIONS BY %s (%s): they are paced by SO_MAX_PACING_RATE instead", s.orders.Mechanism, rate.Error)
		s.deserted = true
		for inode, st := range s.streams {
			s.limits[inode].Detach(st.socket)
			s.limits[inode] = s.Limiter()
			_ = s.limits[inode].Attach(st.socket)
			st.cap = 0
		}
		s.pace(s.Client.Now())
		return
	}
	// At a rate of 0 the kernel would set a timer for ages, which no later rate shortens: see pacing.QuietRate.
	_ = s.Client.Rate(max(total, pacing.QuietRate(s.peak(), 1, soonest, pacing.Burst(1448, pacing.FastReturn, 0), 0)))
}

// drop lets a stream go, and keeps its counts.
func (s *Supervisor) drop(inode uint64, st *stream) {
	s.done.Sent += st.sent()
	s.done.Acked += st.acked()
	s.limits[inode].Detach(st.socket)
	st.socket.Close()
	delete(s.streams, inode)
	delete(s.limits, inode)
}

// scan finds connections that were accepted or inherited, and those that the command has closed.
func (s *Supervisor) scan(now int64) {
	tree, err := flows.Tree(os.Getpid())
	if err != nil {
		s.warn("the command's processes cannot be listed: %v", err)
		return
	}
	open := map[uint64]flows.Descriptor{}
	blind := false
	for _, pid := range tree {
		found, err := flows.Descriptors(pid)
		blind = blind || err != nil
		for _, d := range found {
			open[d.Inode] = d
		}
	}
	for inode := range s.passed {
		if _, there := open[inode]; !there {
			delete(s.passed, inode) // the number may be given to another socket
		}
	}
	for inode, d := range open {
		if _, known := s.streams[inode]; !known && !s.passed[inode] {
			s.meet(d, now)
		}
	}
	for inode, st := range s.streams {
		d, there := open[inode]
		switch {
		case there:
			st.holder, st.lost = d, 0
		case st.closed || blind:
		case st.lost+1 < missed:
			st.lost++
		case st.shut(now):
			s.drop(inode, st)
		}
	}
}

// meet looks at a socket that the filter did not announce.
func (s *Supervisor) meet(d flows.Descriptor, now int64) {
	socket, err := flows.Grab(d.PID, d.FD)
	if err != nil || socket.Inode() != d.Inode {
		s.passed[d.Inode] = errors.Is(err, flows.ErrNotTCP)
		if socket != nil {
			socket.Close()
		}
		return
	}
	counts, err := socket.Counts()
	switch {
	case err != nil:
		socket.Close()
	case counts.State == flows.Listen && s.handsOver():
		socket.Close() // a class is for connections; what it accepts is found when it is there
	case counts.State == flows.Listen:
		s.hold(socket, d, netip.AddrPort{}, false) // what it accepts begins with its rate
	case !socket.Remote().IsValid():
		socket.Close() // not connected yet
	case !s.Choice.takes(socket.Local(), socket.Remote()):
		s.passed[d.Inode] = true
		socket.Close()
	default:
		s.hold(socket, d, socket.Remote(), now-s.began < int64(tick.Microseconds()))
	}
}

// pace gives every connection its share of what may be sent now.
func (s *Supervisor) pace(now int64) {
	total := s.account.Rate(now, s.sent())
	if s.orders.Paused {
		total = 0
	}
	if total == 0 && s.applied > 0 {
		s.quietFrom = now
	}
	s.applied = total
	if s.handsOver() {
		s.remote(total)
		return
	}
	inodes := make([]uint64, 0, len(s.streams))
	streams := make([]pacing.Stream, 0, len(s.streams))
	for inode, st := range s.streams {
		if !st.listens {
			inodes, streams = append(inodes, inode), append(streams, st.demand(now))
		}
	}
	if total == 0 {
		for _, inode := range inodes {
			s.silence(now, inode, s.streams[inode], len(inodes))
		}
	} else {
		for i, cap := range pacing.Split(total, streams) {
			st := s.streams[inodes[i]]
			st.quiet = silence{}
			if streams[i].Hungry && st.opening(now) {
				cap = pacing.OpeningCap(cap, st.segment())
			}
			s.set(inodes[i], st, cap)
			s.quicken(st)
		}
	}
	for inode, st := range s.streams {
		if st.listens {
			s.set(inode, st, max(total/int64(len(inodes)+1), 8_000))
		}
	}
}

// slowest keeps a connection from waiting for minutes after its next packet.
const slowest int64 = 8_000 // bit/s

// set tells the kernel, where it makes a difference.
func (s *Supervisor) set(inode uint64, st *stream, rate int64) {
	rate = max(rate, slowest)
	if diff := rate - st.cap; diff < st.cap/1000+1 && diff > -st.cap/1000-1 && st.cap > 0 {
		return
	}
	if _, err := s.limits[inode].SetRate(rate); err != nil {
		s.warn("pacing: %v", err)
		return
	}
	raised := rate > st.cap
	st.cap = rate
	if raised {
		s.quicken(st)
	}
}

// quicken helps a higher rate into force where no acknowledgement is on its way that would: otherwise the next packet would
// set its timer by the old rate. Where the kernel does not let us, that one packet is late.
func (s *Supervisor) quicken(st *stream) {
	if s.slow || st.spoke == 0 || st.counts.Sent > st.counts.Acked || st.counts.Pacing > st.cap/2 {
		return
	}
	if err := st.socket.Quicken(); errors.Is(err, flows.ErrSlow) {
		s.slow = true
	}
	st.counts.Pacing = st.cap
}

// drained says that nothing is left of what the command sent. A connection that somebody in its tree keeps open without
// using it is left to them, at the rate that it has.
func (s *Supervisor) drained() bool {
	now := s.Client.Now()
	for inode, st := range s.streams {
		idle := st.counts.Unsent == 0 && st.counts.Acked == st.counts.Sent && now-st.moved > quiet
		if st.listens || (!st.closed && st.lost == 0 && idle) {
			s.done.Sent += st.sent()
			s.done.Acked += st.acked()
			if s.orders.Fallback > 0 && !st.listens {
				s.set(inode, st, s.orders.Fallback)
			}
			st.socket.Close()
			delete(s.streams, inode)
			delete(s.limits, inode)
		}
	}
	return len(s.streams) == 0
}
