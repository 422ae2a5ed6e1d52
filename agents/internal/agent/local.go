// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"sync"
	"time"

	"bandwidthbroker/agents/internal/failure"
	"bandwidthbroker/agents/internal/local"
)

const (
	// awaitOrders is how long a command may come before the broker's word about it.
	awaitOrders = 10 * time.Second
	timeEvery   = time.Second
)

// serveLocal listens for commands to be supervised; what it returns ends with close.
func (a *Agent) serveLocal() (stop func()) {
	server, err := local.Listen(local.Path(a.state.Path()), a.cfg.LocalGroup, a.log)
	if err != nil {
		a.log.Error("no local socket: commands cannot be supervised (bwb run)", "error", err)
		return func() {}
	}
	go server.Serve(a)
	return server.Close
}

// About implements local.Daemon.
func (a *Agent) About() local.About {
	return local.About{Agent: a.cfg.Version, Host: a.credentials.Host, Node: a.credentials.Node, Broker: a.credentials.Broker}
}

// Serve implements local.Daemon: the conversation with the supervisor of one command.
func (a *Agent) Serve(line *local.Line, hello local.Hello, pid int) {
	w, refusal := a.wrappedTransfer(hello.Transfer)
	if refusal == nil {
		refusal = w.join(line, pid, hello.Began)
	}
	if refusal != nil && refusal.Code == failure.MechanismUnavailable {
		w.mu.Lock()
		w.fail(refusal)
		w.mu.Unlock()
	}
	if refusal != nil {
		_ = line.Send(local.Message{Refused: refusal}, -1)
		return
	}
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { a.tellTime(line, over) })
	w.converse(line)
	close(over)
	line.Close()
	telling.Wait()
	w.leave(line)
}

// wrappedTransfer finds the transfer, and waits for the broker's word about it if need be.
func (a *Agent) wrappedTransfer(id string) (*wrapped, *local.Refusal) {
	for deadline := time.Now().Add(awaitOrders); ; time.Sleep(50 * time.Millisecond) {
		a.mu.Lock()
		t, known := a.transfers[id]
		a.mu.Unlock()
		switch {
		case known && t.Outcome() != "":
			return nil, &local.Refusal{Code: "ended", Detail: fmt.Sprintf("transfer %s is over here: %s", id, t.Outcome())}
		case known:
			if w, ok := t.mover.(*wrapped); ok {
				return w, nil
			}
			return nil, &local.Refusal{Code: "not_wrapped", Detail: fmt.Sprintf("transfer %s moves no command's data: book it with mode wrapped", id)}
		case time.Now().After(deadline):
			detail := fmt.Sprintf("host %s has no transfer %s: is it booked, committed, and is this host its source?", a.credentials.Host, id)
			return nil, &local.Refusal{Code: "unknown_transfer", Detail: detail}
		}
		poke(a.fetchNow)
	}
}

// tellTime keeps a supervisor's broker time right.
func (a *Agent) tellTime(line *local.Line, over <-chan struct{}) {
	ticker := time.NewTicker(timeEvery)
	defer ticker.Stop()
	for {
		if line.Send(local.Message{Time: a.localTime()}, -1) != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-over:
			return
		}
	}
}

func (a *Agent) localTime() *local.Time {
	return &local.Time{Monotonic: local.Monotonic(), Broker: a.clock.Now(), Guard: a.clock.Guard()}
}
