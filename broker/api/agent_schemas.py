# SPDX-License-Identifier: Apache-2.0
"""What agents and the broker tell each other (docs/agent-protocol.md)."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from broker.api.fields import Body, DataAddress, Fingerprint, Json, RateOrZero, Text, Time, TimeText
from broker.api.schemas import Mechanism, TransferId


class EnrolBody(Body):
    """A host joins with an enrolment token."""

    token: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)]
    data_address: DataAddress
    tls_fingerprint: Fingerprint | None = None
    agent_version: Text | None = None
    capabilities: Json | None = None


class Enrolment(BaseModel):
    """What a host gets when it has joined."""

    host: str
    node: str
    agent_token: str
    server_time: TimeText
    server_took_us: int = Field(description="from the request's arrival to this answer")


class AssignedSegment(BaseModel):
    """A row of the plan that an agent carries out."""

    begin: TimeText
    end: TimeText
    rate_bps: int


class Peer(BaseModel):
    """The host at the other end."""

    host: str
    data_address: str
    tls_fingerprint: str | None


class SignalPeer(BaseModel):
    """The sender at the other end of a start signal."""

    transfer_id: str
    host: str
    data_address: str
    key: str = Field(description="64 hex digits, shared by the two senders of this pair, by nobody else")


class StartAfter(BaseModel):
    """What a successor's sender waits for."""

    predecessor: SignalPeer
    kind: Literal["clock", "direct", "broker"]
    early_from: TimeText | None = Field(description="from here on a signal may start it before its first segment; null: never")
    timeout_us: int
    on_timeout: Literal["start", "cancel"]
    released: bool = Field(description="the predecessor has ended, says the broker: start as if signalled")


class EndSignal(BaseModel):
    """Whom a predecessor's sender tells that the link is free."""

    successor: SignalPeer
    kind: Literal["clock", "direct", "broker"]
    timeout_us: int
    on_overrun: Literal["delay", "fallback"]


class FlowMatchOut(BaseModel):
    """The packets of an observed transfer."""

    protocol: Literal["tcp", "udp"]
    address: str
    source_ports: str | None
    destination_ports: str | None


class Assignment(BaseModel):
    """One transfer's part for one agent."""

    transfer_id: str
    role: Literal["send", "receive"]
    mode: Literal["managed", "wrapped", "observed"]
    state: Literal["RESERVED", "ACTIVE"]
    plan_revision: int
    volume_bytes: int
    source_path: str | None
    destination_path: str | None
    overwrite: bool
    unverified: bool
    segments: list[AssignedSegment]
    deadline: TimeText | None
    paused: bool
    mechanism: Mechanism | None = Field(description="null: what the host prefers")
    match: FlowMatchOut | None = Field(description="the packets of an observed transfer")
    start_after: StartAfter | None = Field(description="for the sender of a successor")
    end_signals: list[EndSignal] = Field(description="for the sender of a predecessor")
    peer: Peer
    key: str


class Assignments(BaseModel):
    """Everything that a host's agent has to do: its desired state."""

    host: str
    revision: int
    server_time: TimeText
    server_took_us: int = Field(description="from the request's arrival to this answer")
    fallback_rate_bps: int
    assignments: list[Assignment]


class AgentClock(Body):
    """What an agent knows of its clock against the broker's."""

    offset_us: Annotated[int, Field(strict=True, ge=-(10**15), le=10**15)]
    error_us: Annotated[int, Field(strict=True, ge=0, le=10**15)]
    adjtimex_error_us: Annotated[int, Field(strict=True, ge=0, le=10**15)] | None = None
    synchronised: bool | None = Field(default=None, strict=True)
    steps: Annotated[int, Field(strict=True, ge=0, le=2**31)] = Field(
        default=0, description="how often the broker's clock was seen to step since the agent started"
    )
    last_step_us: Annotated[int, Field(strict=True, ge=-(10**15), le=10**15)] | None = Field(
        default=None, description="and by how much last"
    )


class AboutAgent(Body):
    """What an agent says of itself."""

    version: Text | None = None
    data_address: DataAddress | None = None
    tls_fingerprint: Fingerprint | None = None
    capabilities: Json | None = None


class AgentReport(Body):
    """Something that happened to a transfer on a host."""

    transfer_id: TransferId
    sequence: Annotated[int, Field(strict=True, ge=1, le=2**62)]
    at: Time
    kind: Literal["started", "progress", "shortfall", "finished", "sent", "failed", "signal"]
    bytes: Annotated[int, Field(strict=True, ge=0, le=10**18)] | None = None
    rate_bps: RateOrZero | None = None
    applied_rate_bps: RateOrZero | None = None
    checksum: Annotated[str, StringConstraints(strict=True, pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    code: Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z_]+$")] | None = None
    detail: Text | None = None


class ReportsBody(Body):
    """What an agent has to say: reports, its clock, itself."""

    clock: AgentClock | None = None
    agent: AboutAgent | None = None
    reports: Annotated[list[AgentReport], Field(fail_fast=True)] = Field(default=[], max_length=1000)
    revision: Annotated[int, Field(strict=True, ge=0, le=2**62)] | None = Field(
        default=None, description="of the assignments that the agent acts by"
    )
    complete: bool = Field(default=False, strict=True, description="these reports are all that the agent has to tell")
    goodbye: bool = Field(default=False, strict=True, description="the agent stops now; what it has goes on when it is back")


class TakenReport(BaseModel):
    """A report that was taken."""

    transfer_id: str
    sequence: int


class IgnoredReport(TakenReport):
    """A report that was not taken, and why."""

    code: str
    detail: str


class ReportsTaken(BaseModel):
    """What became of the reports."""

    accepted: list[TakenReport]
    ignored: list[IgnoredReport]
    revision: int
    server_time: TimeText
    server_took_us: int = Field(description="from the request's arrival to this answer")
