// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"bandwidthbroker/agents/internal/agentstate"
	"bandwidthbroker/agents/internal/brokerapi"
	"bandwidthbroker/agents/internal/brokerclient"
	"bandwidthbroker/agents/internal/tlsid"
)

// Enrolment is what a host needs to become known to a broker.
type Enrolment struct {
	Broker, CAFile    string
	Token             string // one-time
	Listen, Advertise string
	TLS               bool
	Version           string
	Force             bool // replace an earlier identity
}

// ErrEnrolled says that the state folder has an identity already.
var ErrEnrolled = errors.New("enrolled already")

// Enrol trades the one-time token for the agent's own and keeps it. The state folder is locked by the caller.
func Enrol(ctx context.Context, e Enrolment, state *agentstate.Folder) (agentstate.Credentials, error) {
	if c, found, err := state.Credentials(); err != nil {
		return c, err
	} else if found && !e.Force {
		return c, fmt.Errorf("%w as %s at %s (--force enrols again)", ErrEnrolled, c.Host, c.Broker)
	}
	none := agentstate.Credentials{}
	address := e.Advertise
	if address == "" {
		address = e.Listen
	}
	if err := checkAdvertised(address); err != nil {
		return none, err
	}
	client, err := brokerclient.New(brokerclient.Options{Broker: e.Broker, CAFile: e.CAFile})
	if err != nil {
		return none, err
	}
	body := brokerapi.EnrolBody{Token: e.Token, DataAddress: address, AgentVersion: &e.Version, Capabilities: new(Capabilities(e.TLS))}
	if e.TLS {
		identity, err := tlsid.Load(state.Path("tls.pem"))
		if err != nil {
			return none, err
		}
		body.TLSFingerprint = &identity.Fingerprint
	}
	answer, _, err := client.Enrol(ctx, body)
	if err != nil {
		return none, fmt.Errorf("enrolment: %w", err)
	}
	if answer.Host == "" || answer.AgentToken == "" {
		return none, errors.New("enrolment: the broker answered without a host or a token")
	}
	c := agentstate.Credentials{
		Broker: e.Broker, CAFile: e.CAFile, Host: answer.Host, Node: answer.Node, AgentToken: answer.AgentToken,
		EnrolledAt: time.Now().UTC(), Listen: e.Listen, Advertise: e.Advertise, TLS: e.TLS,
	}
	return c, state.SaveCredentials(c)
}

// checkAdvertised refuses addresses that no other host could connect to.
func checkAdvertised(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || port == "0" {
		return fmt.Errorf("data address %q: want HOST:PORT with a fixed port (--advertise)", address)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return fmt.Errorf("data address %q is not one that other hosts can reach: give --advertise HOST:PORT", address)
	}
	return nil
}
