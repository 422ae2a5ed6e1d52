# SPDX-License-Identifier: Apache-2.0
"""Request bodies of the API, and the shapes of its answers as the exported contract (api-spec/openapi.yaml) shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from broker.api.contract.problems import ProblemOut
from broker.api.fields import (
    MAX_SLOT_US,
    UNCHANGED,
    Body,
    FilePath,
    Json,
    Name,
    Patch,
    Path,
    Priority,
    Rate,
    RateOrZero,
    Seconds,
    Switch,
    Text,
    Time,
    TimeText,
    Volume,
)
from broker.api.overview_schemas import OutlookOut
from broker.core.goodput import MAX_MTU_BYTES, MIN_MTU_BYTES
from broker.core.request import DEFAULT_PATHS, DEFAULT_PLANNER, MAX_PATHS, MAX_SEGMENTS

SECONDS_A_YEAR = 366 * 86_400

Mechanism = Literal["pacing", "htb", "fq", "window", "userland"]
Ports = Annotated[str, StringConstraints(strict=True, max_length=11, pattern=r"^[0-9]{1,5}(-[0-9]{1,5})?$")]
BatchIndex = Annotated[int, Field(strict=True, ge=0, lt=100_000)]
TransferId = Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z0-9_]+$")]


class FlowMatch(Body):
    """The packets of an observed transfer, as its source host sends them."""

    protocol: Literal["tcp", "udp"] = "tcp"
    address: Annotated[str, StringConstraints(strict=True, max_length=45)] | None = Field(
        default=None,
        description="IP address that they go to; default: that of the destination host's agent; others where the source host allows it, with operate",
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
    timeout_s: Annotated[float, Field(strict=True, ge=0.01, le=60, allow_inf_nan=False)] | None = Field(
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
    hosts_up_from: Time | None = Field(
        default=None,
        description="when an agent that it needs is down: plan it from this time on, instead of refusing it (`host-down`)",
    )
    priority: Priority = 0
    planner: Annotated[str, StringConstraints(strict=True, max_length=40)] = DEFAULT_PLANNER
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


class TransferChange(Patch):
    """The fields that are given change, all others stay as they are; null takes a limit away."""

    volume_bytes: Volume = UNCHANGED
    duration_s: Duration = UNCHANGED
    rate_max_bps: Rate | None = UNCHANGED
    rate_min_bps: Rate | None = UNCHANGED
    not_before: Time | None = UNCHANGED
    deadline: Time | None = UNCHANGED
    priority: Priority = UNCHANGED
    planner: Annotated[str, StringConstraints(strict=True, max_length=40)] = UNCHANGED
    label: Text | None = UNCHANGED
    project: Text | None = UNCHANGED
    metadata: Json | None = UNCHANGED
    paths: Paths = UNCHANGED
    path: Path | None = UNCHANGED
    split: Switch = UNCHANGED
    shortest_segment_s: ShortestSegment | None = UNCHANGED
    most_segments: MostSegments | None = UNCHANGED
    best_effort: Switch = UNCHANGED


class QuoteRequest(TransferRequest):
    """A transfer request to be answered by several planners, without booking."""

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
    available: Annotated[list[Step], Field(fail_fast=True)] = Field(default=[], max_length=100_000)


OnBroken = Literal["refuse", "replan"]


class LinkChangeBody(Patch):
    """The fields that are given change, all others stay as they are."""

    capacity_bps: RateOrZero = UNCHANGED
    mtu_bytes: Annotated[int, Field(strict=True, ge=MIN_MTU_BYTES, le=MAX_MTU_BYTES)] | None = UNCHANGED
    channel_bps: Rate | None = UNCHANGED
    slot_us: Annotated[int, Field(strict=True, ge=1, le=MAX_SLOT_US)] = UNCHANGED
    metric: Annotated[int, Field(strict=True, ge=0, le=10**12)] | None = UNCHANGED
    available: Annotated[list[Step], Field(fail_fast=True, max_length=100_000)] = UNCHANGED
    on_broken: OnBroken = "refuse"


class WindowBody(Body):
    """On [begin, end) no more than `bps` of the link may be used."""

    begin: Time
    end: Time
    bps: RateOrZero = 0
    kind: Literal["maintenance", "outage", "background"] = "maintenance"
    reason: Text | None = None
    on_broken: OnBroken = "refuse"


# -- answers (documentation of what `broker.api.render` builds) -------------------------------------------------------------------------


class SegmentOut(BaseModel):
    """A row of a plan."""

    begin: TimeText
    end: TimeText
    rate_bps: int
    path: list[str]


class PlanOut(BaseModel):
    """A plan with its metrics."""

    planner: str
    start: TimeText | None
    finish: TimeText | None
    segments: list[SegmentOut]
    paths: list[list[str]]
    metrics: dict[str, float | int | None]


class WaitingReason(BaseModel):
    """Why a transfer waits, or is slower than promised."""

    code: str
    detail: str
    limited_by: str | None
    until: TimeText | None


class TransferOut(BaseModel):
    """A transfer with its plan."""

    id: str
    state: Literal["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"]
    mode: str
    source: str
    destination: str
    volume_bytes: int | None
    booked_bytes: int
    rate_max_bps: int | None
    rate_min_bps: int | None
    not_before: TimeText
    deadline: TimeText | None
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
    promised_finish: TimeText | None
    hold_until: TimeText | None
    paused: bool
    bytes_done: int
    measured_bps: int | None
    actual_start: TimeText | None
    actual_finish: TimeText | None
    checksum: str | None
    unheard_since: TimeText | None = Field(
        description="since when its agents should have been heard of and were not; it may be under way, and keeps what is booked"
    )
    assumed: bool = Field(description="its end is only assumed, for nobody was heard; a late report corrects it")
    waiting_reason: WaitingReason | None
    owner: str
    revision: int
    created: TimeText
    updated: TimeText
    outlook: OutlookOut | None = Field(default=None, description="with outlook=true: how it goes")


class MovedOut(BaseModel):
    """Another transfer that a change would book anew: one that waits for the end of this one."""

    id: str
    label: str | None
    source: str
    destination: str
    promised_finish: TimeText | None
    finish_before: TimeText | None
    finish: TimeText | None
    broken: bool = Field(description="it would end later than promised")


class TransferPreview(TransferOut):
    """What a change would make of the transfer. Nothing was changed."""

    preview: Literal[True]
    freed: list[SegmentOut] = Field(description="what a cancel or a pause would give back")
    moved: list[MovedOut] = Field(description="other transfers that would move with it")


class TransferPage(BaseModel):
    """A page of transfers."""

    items: list[TransferOut]
    next: str | None = Field(description="give it as `cursor` for the next page; null on the last")
    total: int | None = Field(default=None, description="with count=true: how many there are in all")


class BatchItem(BaseModel):
    """What became of an item of a batch."""

    status: int
    transfer: TransferOut | None = None
    problem: ProblemOut | None = None


class BatchOut(BaseModel):
    """What became of a batch."""

    items: list[BatchItem]


class QuoteOut(BaseModel):
    """What one planner would answer."""

    planner: str
    books: bool = Field(description="false: a prediction by a planner that books nothing")
    admitted: bool
    plan: PlanOut | None
    problem: ProblemOut | None


class QuotesOut(BaseModel):
    """What each planner would answer."""

    quotes: list[QuoteOut]


class WindowOut(BaseModel):
    """A window of reduced capacity."""

    id: str
    begin: TimeText
    end: TimeText
    bps: int
    kind: str
    reason: str | None


class LinkOut(BaseModel):
    """A link with its windows."""

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
    """Capacity, booked and free from `begin` on."""

    begin: TimeText
    capacity_bps: int
    booked_bps: int
    free_bps: int
    reverse_booked_bps: int | None = Field(default=None, description="with reverse=true: what is booked on the way back")


class CalendarOut(BaseModel):
    """A link's calendar as steps."""

    link: str
    reverse: str | None = Field(default=None, description="with reverse=true: the link back between the same two nodes")
    begin: TimeText
    end: TimeText
    decimated: bool
    steps: list[CalendarStep]
