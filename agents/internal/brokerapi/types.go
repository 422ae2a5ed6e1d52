// SPDX-License-Identifier: Apache-2.0

package brokerapi

import "time"

// EnrolRequest trades a one-time token for the agent's own.
type EnrolRequest struct {
	Token          string         `json:"token"`
	DataAddress    string         `json:"data_address"`
	TLSFingerprint *string        `json:"tls_fingerprint"`
	AgentVersion   string         `json:"agent_version"`
	Capabilities   map[string]any `json:"capabilities"`
}

// EnrolResponse is the agent's identity.
type EnrolResponse struct {
	Host       string    `json:"host"`
	Node       string    `json:"node"`
	AgentToken string    `json:"agent_token"`
	ServerTime time.Time `json:"server_time"`
}

// Assignments is the desired state of one host.
type Assignments struct {
	Host            string       `json:"host"`
	Revision        int64        `json:"revision"`
	ServerTime      time.Time    `json:"server_time"`
	FallbackRateBps int64        `json:"fallback_rate_bps"`
	Assignments     []Assignment `json:"assignments"`
}

// Assignment is one side of one transfer.
type Assignment struct {
	TransferID      string     `json:"transfer_id"`
	Role            string     `json:"role"`
	Mode            string     `json:"mode"`
	State           string     `json:"state"`
	PlanRevision    int64      `json:"plan_revision"`
	VolumeBytes     int64      `json:"volume_bytes"`
	SourcePath      *string    `json:"source_path"`
	DestinationPath *string    `json:"destination_path"`
	Overwrite       bool       `json:"overwrite"`
	Segments        []Segment  `json:"segments"`
	Deadline        *time.Time `json:"deadline"`
	Paused          bool       `json:"paused"`
	Mechanism       string     `json:"mechanism"`
	Peer            Peer       `json:"peer"`
	Key             string     `json:"key"`
}

// Segment is a booked rate over [begin, end).
type Segment struct {
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
	RateBps int64     `json:"rate_bps"`
}

// Peer is the other agent.
type Peer struct {
	Host           string  `json:"host"`
	DataAddress    string  `json:"data_address"`
	TLSFingerprint *string `json:"tls_fingerprint"`
}

// ReportRequest is what an agent says of itself and its transfers.
type ReportRequest struct {
	Clock   Clock    `json:"clock"`
	Agent   Agent    `json:"agent"`
	Reports []Report `json:"reports"`
}

// Clock is the agent's view of the time.
type Clock struct {
	OffsetUs        int64 `json:"offset_us"`
	ErrorUs         int64 `json:"error_us"`
	AdjtimexErrorUs int64 `json:"adjtimex_error_us"`
	Synchronised    bool  `json:"synchronised"`
}

// Agent describes the agent itself.
type Agent struct {
	Version        string         `json:"version"`
	DataAddress    string         `json:"data_address"`
	TLSFingerprint *string        `json:"tls_fingerprint"`
	Capabilities   map[string]any `json:"capabilities"`
}

// Report is one event of one transfer.
type Report struct {
	TransferID     string    `json:"transfer_id"`
	Sequence       int64     `json:"sequence"`
	At             time.Time `json:"at"`
	Kind           string    `json:"kind"`
	Bytes          int64     `json:"bytes"`
	RateBps        int64     `json:"rate_bps"`
	AppliedRateBps int64     `json:"applied_rate_bps"`
	Checksum       *string   `json:"checksum"`
	Code           *string   `json:"code"`
	Detail         *string   `json:"detail"`
}

// ReportResponse says what was taken.
type ReportResponse struct {
	Accepted   []Accepted `json:"accepted"`
	Ignored    []Ignored  `json:"ignored"`
	Revision   int64      `json:"revision"`
	ServerTime time.Time  `json:"server_time"`
}

// Accepted names a report that was taken, now or before.
type Accepted struct {
	TransferID string `json:"transfer_id"`
	Sequence   int64  `json:"sequence"`
}

// Ignored names a report that the broker does not want, ever.
type Ignored struct {
	TransferID string `json:"transfer_id"`
	Sequence   int64  `json:"sequence"`
	Code       string `json:"code"`
	Detail     string `json:"detail"`
}
