# SPDX-License-Identifier: Apache-2.0
"""The JSON documents that the broker answers with. api-spec/openapi.yaml defines them; a test compares field by field."""

from typing import Any, Literal, NotRequired, TypedDict


class Segment(TypedDict):
    begin: str
    end: str
    rate_bps: int
    path: list[str]


class Plan(TypedDict):
    planner: str
    start: str | None
    finish: str | None
    segments: list[Segment]
    paths: list[list[str]]
    metrics: dict[str, float | int | None]


class WaitingReason(TypedDict):
    code: str
    detail: str
    limited_by: str | None
    until: str | None


class Transfer(TypedDict):
    id: str
    state: str
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
    plan: Plan
    promised_finish: str | None
    hold_until: str | None
    paused: bool
    bytes_done: int
    measured_bps: int | None
    actual_start: str | None
    actual_finish: str | None
    checksum: str | None
    unheard_since: str | None
    assumed: bool
    waiting_reason: WaitingReason | None
    owner: str
    revision: int
    created: str
    updated: str
    outlook: NotRequired[dict[str, Any]]


class Moved(TypedDict):
    id: str
    label: str | None
    source: str
    destination: str
    promised_finish: str | None
    finish_before: str | None
    finish: str | None
    broken: bool


class TransferPreview(Transfer):
    """What a change would make of a transfer, what it would give back, and whom it would move. Nothing was changed."""

    preview: bool
    freed: list[Segment]
    moved: list[Moved]


class BatchItem(TypedDict):
    status: int
    transfer: Transfer | None
    problem: dict[str, Any] | None


class Quote(TypedDict):
    planner: str
    books: bool
    admitted: bool
    plan: Plan | None
    problem: dict[str, Any] | None


class Window(TypedDict):
    id: str
    begin: str
    end: str
    bps: int
    kind: str
    reason: str | None


class Link(TypedDict):
    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: int | None
    channel_bps: int | None
    slot_us: int
    metric: int | None
    available: list[dict[str, Any]]
    windows: list[Window]
    reverse: str | None
    host: str | None
    version: int
    revision: int


class Outcome(TypedDict):
    """What became, or would become, of a transfer that loses its place on a link. `finish` is null when the rest cannot be booked."""

    id: str
    label: str | None
    source: str
    destination: str
    priority: int
    state: str
    limited_by: str
    promised_finish: str | None
    finish_before: str | None
    finish: str | None
    broken: bool
    reason: dict[str, Any] | None


class Settled(TypedDict):
    """Transfers that were planned anew, or could not keep their promise, and what became of the first thousand. Of a preview: would."""

    replanned: list[str]
    broken: list[str]
    outcomes: list[Outcome]
    preview: bool


class LinkChange(Link, Settled):
    """A link after a change of it."""


class LinkDeleted(Settled):
    id: str
    deleted: bool


class TopologyChange(Settled):
    """What a whole network in one call changed: link ids, and the transfers that were planned anew, or could not keep their promise."""

    created: list[str]
    changed: list[str]
    deleted: list[str]
    unchanged: int
    cut_off: list[str]
    revision: int


class Node(TypedDict):
    id: str
    name: str | None
    latitude: float | None
    longitude: float | None


class Topology(TypedDict):
    links: list[dict[str, Any]]
    nodes: list[Node]
    revision: int


class CalendarStep(TypedDict):
    begin: str
    capacity_bps: int
    booked_bps: int
    free_bps: int
    reverse_booked_bps: NotRequired[int | None]


class Calendar(TypedDict):
    link: str
    reverse: NotRequired[str | None]
    begin: str
    end: str
    decimated: bool
    steps: list[CalendarStep]


class LinkBookings(TypedDict):
    """Times are integers here, microseconds since the epoch; a segment is [begin_us, end_us, rate_bps]."""

    link: str
    begin: str
    end: str
    transfers: list[dict[str, Any]]
    rest: dict[str, Any]
    measured: dict[str, Any]


class NetworkLoad(TypedDict):
    begin: str
    end: str
    steps: int
    links: list[dict[str, Any]]


class Scheduled(TypedDict):
    """A segment is [begin_us, end_us, rate_bps, index of its path in `paths`]."""

    id: str
    label: str | None
    project: str | None
    source: str
    destination: str
    state: str
    mode: str
    paused: bool
    priority: int
    volume_bytes: int | None
    start: str | None
    finish: str | None
    promised_finish: str | None
    deadline: str | None
    paths: list[list[str]]
    segments: list[list[int]]


class Overview(TypedDict):
    at: str
    promises: dict[str, Any]
    decisions: dict[str, Any]
    transfers: dict[str, int]
    agents: dict[str, int]
    links: dict[str, Any]


class HostClock(TypedDict):
    offset_us: int
    error_us: int
    adjtimex_error_us: int | None
    synchronised: bool | None
    steps: int
    last_step_us: int | None
    at: str | None
    good: bool
    reason: str | None


class Host(TypedDict):
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
    state: Literal["up", "late", "down", "stopped"]
    revision: int
    fetched_revision: int | None
    enrolled: str
    last_seen: str | None
    transfers: int
    booked_bps: int
    applied_bps: int
    sending_bps: int
    receiving_bps: int


class EnrolmentToken(TypedDict):
    """`state`: open | used | revoked | expired."""

    id: str
    host: str
    node: str
    nic_bps: int
    state: str
    created: str
    expires: str
    used: str | None
    revoked: str | None


class NewEnrolmentToken(EnrolmentToken):
    token: str


class Token(TypedDict):
    """`token`, the secret, is there only in the answer that creates it."""

    id: str
    name: str
    scopes: list[str]
    host: str | None
    created: str
    expires: str | None
    revoked: str | None
    last_used: str | None


class Limit(TypedDict):
    """`value` null: no limit; `used` null: nothing is counted."""

    value: int | None
    default: bool
    used: float | None


class TokenInUse(Token):
    """`sessions` of the dashboard that are open with it, the live `transfers` that it owns, and its `limits` by name."""

    sessions: int
    transfers: int
    limits: dict[str, Limit]
    revision: int


class NewToken(Token):
    token: str


class Event(TypedDict):
    id: str
    at: str
    actor: str
    actor_name: str | None
    action: str
    subject_kind: str
    subject: str
    subject_name: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Audit(TypedDict):
    clean: bool
    at: str
    took_us: int
    violations: dict[str, list[dict[str, Any]]]


class Job(TypedDict):
    """Long work: a re-optimisation (`kind` plan) or a simulation. `result` is there once it is DONE, `error` (a problem) once it is FAILED."""

    id: str
    kind: str
    state: str
    progress: float
    stage: str | None
    cancel_requested: bool
    attempts: int
    request: dict[str, Any]
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    owner: str
    owner_name: str | None
    revision: int
    created: str
    started: str | None
    finished: str | None
