// SPDX-License-Identifier: Apache-2.0

// Package agent puts the parts together: it keeps the broker's desired state and the running transfers the same, and
// tells the broker what is true.
package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/brokerclient"
	"bandwidthbroker/agents/internal/clock"
	"bandwidthbroker/agents/internal/mechanism"
	"bandwidthbroker/agents/internal/mover"
	"bandwidthbroker/agents/internal/observe"
	"bandwidthbroker/agents/internal/reconcile"
	"bandwidthbroker/agents/internal/served"
	"bandwidthbroker/agents/internal/signalport"
	"bandwidthbroker/agents/internal/spool"
	"bandwidthbroker/agents/internal/tclinux"
	"bandwidthbroker/agents/internal/tlsid"
)

// Config is what an agent is started with.
type Config struct {
	Version     string
	ServeDir    string // files are sent from here; empty: none are
	ReceiveDir  string // files are received into here; empty: none are
	Listen      string
	Advertise   string
	FallbackBps int64 // negative: what the broker says
	PeerTimeout time.Duration
	Poll        time.Duration
	LocalGroup  string        // members may have commands supervised (bwb run); empty: the agent's own user alone
	GuardLimit  time.Duration // largest guard time; see clock.LimitGuard
	TLS         bool
	Mechanisms  []mechanism.Name // for assignments that leave it open, the best first; empty: pacing
	Observe     observe.Rules    // what observed transfers may be made of
	TraceFile   string
	Log         *slog.Logger
}

// Agent is one running agent.
type Agent struct {
	cfg         Config
	log         *slog.Logger
	state       *agentstate.Folder
	credentials agentstate.Credentials
	client      *brokerclient.Client
	clock       *clock.Clock
	spool       *spool.Spool
	listener    *mover.Listener
	signals     *signalport.Port
	shaper      *tclinux.Shaper // nil: noShaper says why
	noShaper    error
	mechanisms  *mechanism.Host
	identity    *tlsid.Identity
	serve       *served.Folder
	receive     *served.Folder

	fetchNow   chan struct{}
	deliverNow chan struct{}

	leaving atomic.Bool // every call says goodbye: nothing new is to be promised on this host

	mu         sync.Mutex
	transfers  map[string]*transfer
	senseless  map[string]bool // assignments that the broker was told make no sense
	revision   int64
	swept      bool
	operations int // carried out since start: what "twice is a no-op" is proven by
}

// transfer is one side of one transfer as it runs, or as it ended.
type transfer struct {
	orders mover.Orders
	mover  interface { // nil when it ended in an earlier run
		Update(mover.Orders)
		Stop(remove bool)
		Progress() mover.Progress
	}
	*outbox
}

// Run is the agent from start to stop. The state folder is locked by the caller.
func Run(ctx context.Context, cfg Config, state *agentstate.Folder) error {
	a, err := prepare(cfg, state)
	if err != nil {
		return err
	}
	defer a.listener.Close()
	defer a.signals.Close()
	defer a.closeShaper()
	return a.run(ctx)
}

func prepare(cfg Config, state *agentstate.Folder) (*Agent, error) {
	credentials, found, err := state.Credentials()
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("not enrolled yet: run `bwb-agent enrol` first, or set BWB_ENROLMENT_TOKEN")
	}
	a := &Agent{
		cfg: cfg, log: cfg.Log, state: state, credentials: credentials, clock: clock.New(state.Clock()),
		fetchNow: make(chan struct{}, 1), deliverNow: make(chan struct{}, 1), transfers: map[string]*transfer{}, senseless: map[string]bool{},
	}
	a.clock.LimitGuard(cfg.GuardLimit)
	if a.client, err = brokerclient.New(brokerclient.Options{
		Broker: credentials.Broker, Token: credentials.AgentToken, CAFile: credentials.CAFile, Local: a.clock.Local,
	}); err != nil {
		return nil, err
	}
	if a.spool, err = spool.Open(state.Path("spool")); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, folder := range []struct {
		flag, dir string
		to        **served.Folder
	}{{"serve", cfg.ServeDir, &a.serve}, {"receive", cfg.ReceiveDir, &a.receive}} {
		if folder.dir == "" {
			continue
		}
		if *folder.to, err = served.Open(folder.dir); err != nil {
			return nil, fmt.Errorf("--%s: %w", folder.flag, err)
		}
	}
	var config *tls.Config
	if cfg.TLS {
		if a.identity, err = tlsid.Load(state.Path("tls.pem")); err != nil {
			return nil, err
		}
		config = a.identity.Serve()
	}
	if a.listener, err = mover.Listen(cfg.Listen, config, a.log); err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	a.signals = signalport.Open(a.listener.Address(), a.log)
	if a.shaper, a.noShaper = openShaper(); a.noShaper != nil {
		a.log.Info("no classes of packets: mechanism htb and mode observed are not possible", "reason", a.noShaper)
	}
	a.probeMechanisms()
	return a, nil
}

func (a *Agent) run(ctx context.Context) error {
	a.log.Info("agent runs", "version", a.cfg.Version, "host", a.credentials.Host, "node", a.credentials.Node,
		"broker", a.credentials.Broker, "listen", a.listener.Address(), "advertise", a.advertise(), "tls", a.cfg.TLS)
	defer a.serveLocal()()
	loops, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	fresh := make(chan struct{}) // closed when the broker has answered, or will not soon
	running.Go(func() { a.converge(loops, fresh) })
	running.Go(func() { a.listen(loops) })
	running.Go(func() { a.reports(loops, fresh) })
	if a.cfg.TraceFile != "" {
		running.Go(func() { a.trace(loops) })
	}
	<-ctx.Done()
	a.log.Info("stopping")
	stop()
	running.Wait()
	a.stopAll()
	a.lastWords()
	return nil
}

// stopAll ends every transfer here and keeps what is needed to go on later.
func (a *Agent) stopAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var stopping sync.WaitGroup
	for _, t := range a.transfers {
		if t.mover != nil {
			stopping.Go(func() { t.mover.Stop(false) })
		}
	}
	stopping.Wait()
}

// apply makes the running transfers what the document says.
func (a *Agent) apply(doc brokerapi.Assignments, refused map[string]error) {
	for id, err := range refused {
		a.log.Error("assignment makes no sense, left as it was", "transfer", id, "error", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveUp(refused)
	running := make(map[string]mover.Orders, len(a.transfers))
	for id, t := range a.transfers {
		running[id] = t.orders
	}
	for _, op := range reconcile.Diff(running, reconcile.Wanted(doc, a.cfg.FallbackBps), refused) {
		a.operations++
		poke(a.deliverNow) // reports become due every second, and the status changes
		a.log.Info("reconcile", "operation", op.String(), "plan_revision", op.Orders.Revision)
		switch op.Verb {
		case reconcile.Stop:
			a.stop(op.Orders.Transfer)
		case reconcile.Update:
			t := a.transfers[op.Orders.Transfer]
			t.orders = op.Orders
			if t.mover != nil {
				t.mover.Update(op.Orders)
			}
		case reconcile.Start:
			a.start(op.Orders)
		}
	}
	a.revision = doc.Revision
	if !a.swept {
		a.swept = true
		a.sweep(refused)
		a.sweepClasses()
	}
}
