// SPDX-License-Identifier: Apache-2.0

// Package failure is why a transfer cannot be done: the codes of docs/agent-protocol.md, section 3.
package failure

import (
	"errors"
	"fmt"
)

// The codes, as they go into `failed` reports and ERROR messages.
const (
	FileMissing       = "file_missing"
	FileUnreadable    = "file_unreadable"
	FileSize          = "file_size"
	FileChanged       = "file_changed"
	PathRefused       = "path_refused"
	DestinationExists = "destination_exists"
	DiskFull          = "disk_full"
	WriteFailed       = "write_failed"
	ChecksumMismatch  = "checksum_mismatch"
	PeerUnreachable   = "peer_unreachable"
	Authentication    = "authentication"
	SignalLost        = "signal_lost"
	CommandFailed     = "command_failed"
	SupervisorLost    = "supervisor_lost"
	Internal          = "internal"

	MechanismUnavailable = "mechanism_unavailable"
	NothingObserved      = "nothing_observed"
	MatchRefused         = "match_refused"
)

// Failure ends a transfer: trying again would not help.
type Failure struct {
	Code, Detail string
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// New makes a failure.
func New(code, format string, args ...any) *Failure {
	return &Failure{code, fmt.Sprintf(format, args...)}
}

// Of finds the failure in an error; nil when the error is one to try again after.
func Of(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}
