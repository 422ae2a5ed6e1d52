# SPDX-License-Identifier: Apache-2.0
"""Request bodies of the API, and the shapes of its answers as the exported contract (api-spec/openapi.yaml) shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from broker.api.fields import (
    MAX_SLOT_US,
    Body,
    DataAddress,
    FilePath,
    Fingerprint,
    HostName,
    Json,
    Name,
    Path,
    Priority,
    Rate,
    RateOrZero,
    Seconds,
    Text,
    Time,
    Volume,
)
from broker.api.outlook import OutlookOut
from broker.core.goodput import MAX_MTU_BYTES, MIN_MTU_BYTES
from broker.core.request import DEFAULT_PATHS, MAX_PATHS, MAX_SEGMENTS
from broker.fleet.tokens import Scope

SECONDS_A_YEAR = 366 * 86_400

Mechanism = Literal["pacing", "htb", "fq", "window", "userland"]
Ports = Annotated[str, StringConstraints(strict=True, max_length=11, pattern=r"^[0-9]{1,5}(-[0-9]{1,5})?$")]
BatchIndex = Annotated[int, Field(strict=True, ge=0, lt=100_000)]
TransferId = Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z0-9_]+$")]


class FlowMatch(Body):
    """The packets of an observed transfer, as its source host sends them."""

    protocol: Literal["tcp", "udp"] = "tcp"
    address: Annotated[str, StringConstraints(strict=True, max_length=45)] | None = Field(
        default=None, description="IP address that they go to; default: that of the destination host's agent"
    )
    source_ports: Ports | None = Field(default=None, description='"5001" or "5001-5010"')
    destination_ports: Ports | None = Field(default=None, description='"5001" or "5001-5010"')


class Payload(Body):
    """What a managed transfer moves, or which packets an observed one consists of."""

    path: FilePath | None = Field(default=None, description="file to send, relative to the sender's served folder (managed)")
    destination_path: FilePath | None = Field(
        default=None, description="where to put it, relative to the receiver's folder; default: as `path`"
    )
    overwrite: bool = Field(default=False, strict=True)
    verify: bool = Field(
        default=True,
        strict=True,
        description="compare the SHA-256 of both ends; without, a transfer costs less and has no `checksum`",
    )
    match: FlowMatch | None = Field(default=None, description="which packets (observed)")


class StartSignal(Body):
    """On what a transfer starts that has a predecessor (`after`), and what happens when the signal does not come (RR-6205, section 2.2)."""

    kind: Literal["clock", "direct", "broker"] = Field(
        default="direct", description="the booked time; a handshake with the predecessor's sender; a word of the broker"
    )
    timeout_s: Annotated[Seconds, Field(ge=0.01, le=60)] | None = Field(
        default=None,
        description="so long after the booked start, or after the predecessor was last heard, the signal counts as lost",
    )
    on_timeout: Literal["start", "cancel"] = "start"
    on_overrun: Literal["delay", "fallback"] = Field(
        default="delay", description="a predecessor that is late holds this one up (delay), or goes on at its fallback rate"
    )


Duration = Annotated[Seconds, Field(le=SECONDS_A_YEAR)]
Paths = Annotated[int, Field(strict=True, ge=1, le=MAX_PATHS)]
ShortestSegment = Annotated[Seconds, Field(le=MAX_SLOT_US // 1_000_000)]
MostSegments = Annotated[int, Field(strict=True, ge=1, le=MAX_SEGMENTS)]


class TransferRequest(Body):
    """Move `volume_bytes` from `source` to `destination`, or hold capacity there for `duration_s`: nodes or enrolled hosts."""

    source: Name
    destination: Name
    volume_bytes: Volume | None = None
    duration_s: Duration | None = Field(
        default=None, description="instead of a volume: hold capacity so long, without a gap (class 2)"
    )
    rate_max_bps: Rate | None = None
    rate_min_bps: Rate | None = None
    not_before: Time | None = Field(default=None, description="default, and where it lies in the past: now")
    deadline: Time | None = None
    priority: Priority = 0
    planner: Annotated[str, StringConstraints(strict=True, max_length=40)] = "vbls"
    project: Text | None = None
    label: Text | None = None
    hold: bool = Field(default=False, strict=True, description="book, but wait for a commit")
    mode: Literal["reserve", "managed", "wrapped", "observed"] | None = None
    payload: Payload | None = None
    mechanism: Mechanism | None = Field(
        default=None, description="how its hosts hold it to the rate; default: what the host prefers"
    )
    after: TransferId | BatchIndex | None = Field(
        default=None,
        description="the transfer whose end starts this one: its id, or the index of an earlier item of the same batch",
    )
    signal: StartSignal | None = Field(
        default=None,
        description="with `after`, or with planner vifi for when it takes its turn behind another one; default: direct",
    )
    metadata: Json | None = None
    paths: Paths = Field(default=DEFAULT_PATHS, description="how many of the shortest loop-free paths a plan may choose from")
    path: Path | None = Field(default=None, description="this path and no other")
    split: bool = Field(default=False, strict=True, description="several paths may carry it at once (mode reserve)")
    shortest_segment_s: ShortestSegment | None = Field(default=None, description="no segment but the last is shorter")
    most_segments: MostSegments | None = Field(default=None, description="the rate changes no more often")
    best_effort: bool = Field(default=False, strict=True, description="gives way to requests of higher priority that preempt")
    preempt: bool = Field(
        default=False,
        strict=True,
        description="what does not fit may displace best-effort transfers of lower priority (scope operate)",
    )


class TransferChange(Body):
    """The fields that are given change; null takes a limit away."""

    volume_bytes: Volume = Field(default=0, validate_default=False)
    duration_s: Duration = Field(default=0, validate_default=False)
    rate_max_bps: Rate | None = None
    rate_min_bps: Rate | None = None
    not_before: Time | None = None
    deadline: Time | None = None
    priority: Priority = 0
    planner: Annotated[str, StringConstraints(strict=True, max_length=40)] = "vbls"
    label: Text | None = None
    project: Text | None = None
    metadata: Json | None = None
    paths: Paths = DEFAULT_PATHS
    path: Path | None = None
    split: bool = Field(default=False, strict=True)
    shortest_segment_s: ShortestSegment | None = None
    most_segments: MostSegments | None = None
    best_effort: bool = Field(default=False, strict=True)


class QuoteRequest(TransferRequest):
    planners: list[Annotated[str, StringConstraints(strict=True, max_length=40)]] | None = Field(
        default=None, min_length=1, max_length=20, description='default: `planner` alone; ["*"]: all that there are'
    )


class Step(Body):
    """From `from` on, `bps` may be used, until the next step."""

    from_: Time = Field(alias="from")
    bps: RateOrZero


class LinkBody(Body):
    """A directed link, as in NET.json."""

    id: Name
    source: Name
    target: Name
    capacity_bps: RateOrZero
    mtu_bytes: Annotated[int, Field(strict=True, ge=MIN_MTU_BYTES, le=MAX_MTU_BYTES)] | None = Field(
        default=None, description="given: capacity_bps is the line rate and only the payload share of it is booked"
    )
    channel_bps: Rate | None = Field(default=None, description="chi: rates are whole multiples")
    slot_us: Annotated[int, Field(strict=True, ge=1, le=MAX_SLOT_US)] = Field(default=1, description="boundaries fall on multiples")
    metric: Annotated[int, Field(strict=True, ge=0, le=10**12)] | None = None
    available: list[Step] = Field(default=[], max_length=100_000)


OnBroken = Literal["refuse", "replan"]


class LinkChangeBody(Body):
    """The fields that are given change."""

    capacity_bps: RateOrZero = 0
    mtu_bytes: Annotated[int, Field(strict=True, ge=MIN_MTU_BYTES, le=MAX_MTU_BYTES)] | None = None
    channel_bps: Rate | None = None
    slot_us: Annotated[int, Field(strict=True, ge=1, le=MAX_SLOT_US)] = 1
    metric: Annotated[int, Field(strict=True, ge=0, le=10**12)] | None = None
    available: list[Step] = Field(default=[], max_length=100_000)
    on_broken: OnBroken = "refuse"


class WindowBody(Body):
    """On [begin, end) no more than `bps` of the link may be used."""

    begin: Time
    end: Time
    bps: RateOrZero = 0
    kind: Literal["maintenance", "outage", "background"] = "maintenance"
    reason: Text | None = None
    on_broken: OnBroken = "refuse"


class TokenBody(Body):
    name: Text = Field(min_length=1)
    scopes: list[Literal[Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN]] = Field(min_length=1, max_length=4)
    expires: Time | None = None


class SessionBody(Body):
    token: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] = Field(description="bwb_...")


class EnrolmentTokenBody(Body):
    host: HostName
    node: Name
    nic_bps: Rate
    ttl_s: Annotated[int, Field(strict=True, ge=1, le=30 * 86_400)] = 3600


class HostChangeBody(Body):
    drained: bool = Field(strict=True, description="a drained host takes no new transfers")


# -- agents ---------------------------------------------------------------------------------------------------------------------------


class EnrolBody(Body):
    token: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)]
    data_address: DataAddress
    tls_fingerprint: Fingerprint | None = None
    agent_version: Text | None = None
    capabilities: Json | None = None


class Enrolment(BaseModel):
    host: str
    node: str
    agent_token: str
    server_time: str
    server_took_us: int = Field(description="from the request's arrival to this answer")


class AssignedSegment(BaseModel):
    begin: str
    end: str
    rate_bps: int


class Peer(BaseModel):
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
    early_from: str | None = Field(description="from here on a signal may start it before its first segment; null: never")
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
    protocol: Literal["tcp", "udp"]
    address: str
    source_ports: str | None
    destination_ports: str | None


class Assignment(BaseModel):
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
    deadline: str | None
    paused: bool
    mechanism: Mechanism | None = Field(description="null: what the host prefers")
    match: FlowMatchOut | None = Field(description="the packets of an observed transfer")
    start_after: StartAfter | None = Field(description="for the sender of a successor")
    end_signals: list[EndSignal] = Field(description="for the sender of a predecessor")
    peer: Peer
    key: str


class Assignments(BaseModel):
    host: str
    revision: int
    server_time: str
    server_took_us: int = Field(description="from the request's arrival to this answer")
    fallback_rate_bps: int
    assignments: list[Assignment]


class AgentClock(Body):
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
    version: Text | None = None
    data_address: DataAddress | None = None
    tls_fingerprint: Fingerprint | None = None
    capabilities: Json | None = None


class AgentReport(Body):
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
    clock: AgentClock | None = None
    agent: AboutAgent | None = None
    reports: list[AgentReport] = Field(default=[], max_length=1000)


class TakenReport(BaseModel):
    transfer_id: str
    sequence: int


class IgnoredReport(TakenReport):
    code: str
    detail: str


class ReportsTaken(BaseModel):
    accepted: list[TakenReport]
    ignored: list[IgnoredReport]
    revision: int
    server_time: str
    server_took_us: int = Field(description="from the request's arrival to this answer")


# -- answers (documentation of what `broker.api.render` builds) -------------------------------------------------------------------------


class SegmentOut(BaseModel):
    begin: str
    end: str
    rate_bps: int
    path: list[str]


class PlanOut(BaseModel):
    planner: str
    start: str | None
    finish: str | None
    segments: list[SegmentOut]
    paths: list[list[str]]
    metrics: dict[str, float | int | None]


class WaitingReason(BaseModel):
    code: str
    detail: str
    limited_by: str | None
    until: str | None


class TransferOut(BaseModel):
    id: str
    state: Literal["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"]
    mode: str
    source: str
    destination: str
    volume_bytes: int | None
    booked_bytes: int
    rate_max_bps: int | None
    rate_min_bps: int | None
    not_before: str
    deadline: str | None
    duration_s: float | None
    priority: int
    best_effort: bool
    paths: int
    path: list[str] | None
    split: bool
    shortest_segment_s: float | None
    most_segments: int | None
    planner: str
    project: str | None
    label: str | None
    payload: dict[str, Any] | None
    mechanism: str | None
    after: str | None
    signal: dict[str, Any] | None
    metadata: dict[str, Any] | None
    plan: PlanOut
    promised_finish: str | None
    hold_until: str | None
    paused: bool
    bytes_done: int
    measured_bps: int | None
    actual_start: str | None
    actual_finish: str | None
    checksum: str | None
    waiting_reason: WaitingReason | None
    owner: str
    revision: int
    created: str
    updated: str
    outlook: OutlookOut | None = Field(default=None, description="with outlook=true: how it goes")


class TransferPreview(TransferOut):
    """What a change would make of the transfer. Nothing was changed."""

    preview: Literal[True]
    freed: list[SegmentOut] = Field(description="what a cancel or a pause would give back")


class ProblemOut(BaseModel):
    """RFC 9457. `type` ends in a stable code; further members explain the refusal."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


class TransferPage(BaseModel):
    items: list[TransferOut]
    next: str | None = Field(description="give it as `cursor` for the next page; null on the last")
    total: int | None = Field(default=None, description="with count=true: how many there are in all")


class BatchItem(BaseModel):
    status: int
    transfer: TransferOut | None = None
    problem: ProblemOut | None = None


class BatchOut(BaseModel):
    items: list[BatchItem]


class QuoteOut(BaseModel):
    planner: str
    books: bool = Field(description="false: a prediction by a planner that books nothing")
    admitted: bool
    plan: PlanOut | None
    problem: ProblemOut | None


class QuotesOut(BaseModel):
    quotes: list[QuoteOut]


class WindowOut(BaseModel):
    id: str
    begin: str
    end: str
    bps: int
    kind: str
    reason: str | None


class LinkOut(BaseModel):
    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: int | None
    channel_bps: int | None
    slot_us: int
    metric: int | None
    available: list[dict[str, Any]]
    windows: list[WindowOut]
    reverse: str | None = Field(description="the link back between the same two nodes")
    host: str | None
    version: int
    revision: int


class CalendarStep(BaseModel):
    begin: str
    capacity_bps: int
    booked_bps: int
    free_bps: int
    reverse_booked_bps: int | None = Field(default=None, description="with reverse=true: what is booked on the way back")


class CalendarOut(BaseModel):
    link: str
    reverse: str | None = Field(default=None, description="with reverse=true: the link back between the same two nodes")
    begin: str
    end: str
    decimated: bool
    steps: list[CalendarStep]


class HostClock(BaseModel):
    """What an agent said last of its clock, and what the broker makes of it."""

    offset_us: int = Field(description="broker time minus the host's own wall clock")
    error_us: int = Field(description="bound of the error with which the agent knows broker time, when it said so")
    adjtimex_error_us: int | None = Field(description="what the host's kernel estimates of its own clock")
    synchronised: bool | None = Field(description="NTP or PTP steers the host's clock")
    steps: int = Field(description="how often the agent saw the broker's clock step")
    last_step_us: int | None
    at: str | None = Field(description="when the agent said so")
    good: bool = Field(description="good enough for starts that rest on the clock alone")
    reason: str | None = Field(description="why not")


class HostOut(BaseModel):
    name: str
    node: str
    nic_bps: int
    data_address: str
    tls: bool
    agent_version: str | None
    capabilities: dict[str, Any] | None
    clock: HostClock | None
    drained: bool
    up: bool
    state: Literal["up", "late", "down"] = Field(description="late: silent for half of what makes it down")
    revision: int = Field(description="of its assignments")
    fetched_revision: int | None = Field(description="what its agent was given last: behind `revision`, it follows an older plan")
    enrolled: str
    last_seen: str | None
    transfers: int = Field(description="live ones from and to it")
    booked_bps: int = Field(description="what it should send now")
    applied_bps: int = Field(description="what its agent says it has set for that")
    sending_bps: int = Field(description="measured, in the last ten seconds")
    receiving_bps: int


class TokenOut(BaseModel):
    id: str
    name: str
    scopes: list[str]
    host: str | None
    created: str
    expires: str | None
    revoked: str | None
    last_used: str | None = Field(description="to a minute; null: never")
    token: str | None = Field(default=None, description="the secret, shown only in the answer that creates it")


class TokenInUse(TokenOut):
    """A token, and what would no longer go on without it."""

    sessions: int = Field(description="of the dashboard, open with it now")
    transfers: int = Field(description="live ones that it owns; they go on without it")


class SessionOut(BaseModel):
    """Who is calling."""

    id: str = Field(description="of the token, the `owner` of what is booked with it")
    name: str
    scopes: list[str]
    expires: str | None = Field(description="when the session ends; null: called with the token itself")


class EventOut(BaseModel):
    id: str
    at: str
    actor: str
    actor_name: str | None = Field(description="of the token that acted; null in the live stream, and where there is none")
    action: str
    subject_kind: str
    subject: str
    subject_name: str | None = Field(description="label of the transfer, name of the token; null as above")
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditLogPage(BaseModel):
    items: list[EventOut]
    next: str | None
