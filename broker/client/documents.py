# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of the API, generated from api-spec/openapi.yaml by packaging/contract.py; do not edit."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AboutAgent(TypedDict):
    """
    What an agent says of itself.
    """

    version: NotRequired[str | None]
    data_address: NotRequired[str | None]
    tls_fingerprint: NotRequired[str | None]
    capabilities: NotRequired[dict[str, Any] | None]


class AgentClock(TypedDict):
    """
    What an agent knows of its clock against the broker's.
    """

    offset_us: int
    error_us: int
    adjtimex_error_us: NotRequired[int | None]
    synchronised: NotRequired[bool | None]
    steps: NotRequired[int]
    last_step_us: NotRequired[int | None]


class AgentReport(TypedDict):
    """
    Something that happened to a transfer on a host.
    """

    transfer_id: str
    sequence: int
    at: str
    kind: Literal["started", "progress", "shortfall", "finished", "sent", "failed", "signal"]
    bytes: NotRequired[int | None]
    rate_bps: NotRequired[int | None]
    applied_rate_bps: NotRequired[int | None]
    checksum: NotRequired[str | None]
    code: NotRequired[str | None]
    detail: NotRequired[str | None]


class Agents(TypedDict):
    """
    How many agents are up, late and down.
    """

    up: int
    late: int
    down: int


class AssignedSegment(TypedDict):
    """
    A row of the plan that an agent carries out.
    """

    begin: str
    end: str
    rate_bps: int


class Audit(TypedDict):
    """
    Whether the invariants hold, proven from SQL alone.
    """

    clean: bool
    at: str
    took_us: int
    violations: dict[str, list[dict[str, Any]]]


class BrokenPromise(TypedDict):
    """
    A transfer whose promise a change would break.
    """

    id: str
    label: str | None
    priority: int
    finish: str | None


class BusyLink(TypedDict):
    """
    A link that is nearly full.
    """

    id: str
    source: str
    target: str
    capacity_bps: int
    booked_bps: int
    share: float | None


class CalendarStep(TypedDict):
    """
    Capacity, booked and free from `begin` on.
    """

    begin: str
    capacity_bps: int
    booked_bps: int
    free_bps: int
    reverse_booked_bps: NotRequired[int | None]


class CounterOffer(TypedDict):
    """
    A change with which the request would be admitted until `valid_until`, as long as the network stays as it is.
    """

    kind: Literal["earliest_finish", "smallest_deadline", "largest_volume", "smallest_rate", "largest_rate_min", "longest_duration"]
    detail: str
    valid_until: str
    finish: NotRequired[str]
    deadline: NotRequired[str]
    volume_bytes: NotRequired[int]
    rate_max_bps: NotRequired[int]
    rate_min_bps: NotRequired[int | None]
    duration_s: NotRequired[int]


class DecisionsHour(TypedDict):
    """
    Decisions of one hour.
    """

    begin: str
    admitted: int
    refused: int


class Endangered(TypedDict):
    """
    A transfer whose promise is at risk.
    """

    id: str
    label: str | None
    project: str | None
    source: str
    destination: str
    state: str
    priority: int
    promise: Literal["kept", "at_risk", "broken"]
    why: str
    detail: str
    promised_finish: str
    finish: str


class EndedPromises(TypedDict):
    """
    How many promises of ended transfers were kept.
    """

    kept: int
    broken: int


class EnrolBody(TypedDict):
    """
    A host joins with an enrolment token.
    """

    token: str
    data_address: str
    tls_fingerprint: NotRequired[str | None]
    agent_version: NotRequired[str | None]
    capabilities: NotRequired[dict[str, Any] | None]


class Enrolment(TypedDict):
    """
    What a host gets when it has joined.
    """

    host: str
    node: str
    agent_token: str
    server_time: str
    server_took_us: int


class EnrolmentToken(TypedDict):
    """
    An enrolment token.
    """

    id: str
    host: str
    node: str
    nic_bps: int
    state: Literal["open", "used", "revoked", "expired"]
    created: str
    expires: str
    used: str | None
    revoked: str | None


class EnrolmentTokenBody(TypedDict):
    """
    A new enrolment token.
    """

    host: str
    node: str
    nic_bps: int
    ttl_s: NotRequired[int]


class Event(TypedDict):
    """
    Something that happened.
    """

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


EventName: TypeAlias = Literal[
    "transfer.admitted",
    "transfer.committed",
    "transfer.started",
    "transfer.changed",
    "transfer.paused",
    "transfer.resumed",
    "transfer.rebooked",
    "transfer.replanned",
    "transfer.pulled_forward",
    "transfer.displacing",
    "transfer.preempted",
    "transfer.released",
    "transfer.delayed",
    "transfer.moved_up",
    "transfer.handed_over",
    "transfer.rechained",
    "transfer.unchained",
    "transfer.signal",
    "transfer.unheard",
    "transfer.heard",
    "transfer.given_back",
    "transfer.finished",
    "transfer.failed",
    "transfer.canceled",
    "transfer.expired",
    "link.created",
    "link.changed",
    "link.deleted",
    "window.created",
    "window.removed",
    "node.changed",
    "host.enrolled",
    "host.changed",
    "host.removed",
    "enrolment_token.created",
    "enrolment_token.revoked",
    "token.created",
    "token.changed",
    "token.revoked",
    "session.opened",
    "session.closed",
    "job.queued",
    "job.started",
    "job.done",
    "job.failed",
    "job.canceling",
    "job.canceled",
    "job.applied",
    "reset",
    "resume",
]


class FieldError(TypedDict):
    """
    One mistake in one field.
    """

    field: str
    detail: str


class FlowMatch(TypedDict):
    """
    The packets of an observed transfer, as its source host sends them.
    """

    protocol: NotRequired[Literal["tcp", "udp"]]
    address: NotRequired[str | None]
    source_ports: NotRequired[str | None]
    destination_ports: NotRequired[str | None]


class FlowMatchOut(TypedDict):
    """
    The packets of an observed transfer.
    """

    protocol: Literal["tcp", "udp"]
    address: str
    source_ports: str | None
    destination_ports: str | None


class Health(TypedDict):
    """
    Is the broker well?
    """

    status: str
    wakeups: NotRequired[bool | None]
    detail: NotRequired[str | None]


class HostChangeBody(TypedDict):
    """
    A change of a host.
    """

    drained: bool


class HostClock(TypedDict):
    """
    What an agent said last of its clock, and what the broker makes of it.
    """

    offset_us: int
    error_us: int
    adjtimex_error_us: int | None
    synchronised: bool | None
    steps: int
    last_step_us: int | None
    at: str | None
    good: bool
    reason: str | None


class IgnoredReport(TypedDict):
    """
    A report that was not taken, and why.
    """

    transfer_id: str
    sequence: int
    code: str
    detail: str


Interval = TypedDict(
    "Interval",
    {
        "from": str,
        "to": str,
    },
)


JobState: TypeAlias = Literal["QUEUED", "RUNNING", "DONE", "FAILED", "CANCELED"]


class Limit(TypedDict):
    """
    A limit of a token and how much of it is used.
    """

    value: int | None
    default: bool
    used: float | None


class LimitsBody(TypedDict):
    """
    Limits of one token by name; null: the broker's default.
    """

    open_transfers: NotRequired[int | Literal["unlimited"] | None]
    booked_gb_hours: NotRequired[int | Literal["unlimited"] | None]
    horizon_s: NotRequired[int | Literal["unlimited"] | None]
    priority: NotRequired[int | Literal["unlimited"] | None]
    jobs: NotRequired[int | Literal["unlimited"] | None]
    successors: NotRequired[int | Literal["unlimited"] | None]


class LinkLoad(TypedDict):
    """
    What a link carries over time.
    """

    id: str
    shares: list[float | None]


class LinkUser(TypedDict):
    """
    A transfer that uses a link.
    """

    id: str
    label: str | None
    project: str | None
    state: str
    source: str
    destination: str
    booked_bytes: int
    segments: list[list[int]]


class LinksNow(TypedDict):
    """
    Links at this moment.
    """

    number: int
    busiest: list[BusyLink]


class LivePromises(TypedDict):
    """
    How many promises of live transfers stand how.
    """

    kept: int
    at_risk: int
    broken: int


class Measured(TypedDict):
    """
    What was really carried in a stretch of time.
    """

    begin_us: int
    span_us: int
    rates_bps: list[int | None]


class Moved(TypedDict):
    """
    Another transfer that a change would book anew: one that waits for the end of this one.
    """

    id: str
    label: str | None
    source: str
    destination: str
    promised_finish: str | None
    finish_before: str | None
    finish: str | None
    broken: bool


class NetworkLoad(TypedDict):
    """
    What every link carries over time.
    """

    begin: str
    end: str
    steps: int
    links: list[LinkLoad]


class NewEnrolmentToken(TypedDict):
    """
    A new enrolment token with its secret.
    """

    id: str
    host: str
    node: str
    nic_bps: int
    state: Literal["open", "used", "revoked", "expired"]
    created: str
    expires: str
    used: str | None
    revoked: str | None
    token: str


class NewToken(TypedDict):
    """
    A new token with its secret.
    """

    id: str
    name: str
    scopes: list[str]
    host: str | None
    created: str
    expires: str | None
    revoked: str | None
    last_used: str | None
    token: str


class Node(TypedDict):
    """
    A node and its location.
    """

    id: str
    name: str | None
    latitude: float | None
    longitude: float | None


class NodeBody(TypedDict):
    """
    Metadata of a node.
    """

    id: str
    name: NotRequired[str | None]
    latitude: NotRequired[float | None]
    longitude: NotRequired[float | None]


class OtherUsers(TypedDict):
    """
    All that are not listed, together.
    """

    transfers: int
    booked_bytes: int
    segments: list[list[int]]


class Outlook(TypedDict):
    """
    How a transfer's promise stands.
    """

    promise: Literal["kept", "at_risk", "broken"] | None
    why: str | None
    detail: str | None
    planned_bytes: int
    expected_finish: str | None
    earliest_finish: str | None
    latest_finish: str | None
    model: Literal["plan", "reports"] | None
    applied_bps: int | None
    share: float | None
    owner_name: str


class Payload(TypedDict):
    """
    What a managed transfer moves, or which packets an observed one consists of.
    """

    path: NotRequired[str | None]
    destination_path: NotRequired[str | None]
    overwrite: NotRequired[bool]
    verify: NotRequired[bool]
    match: NotRequired[FlowMatch | None]


class Peer(TypedDict):
    """
    The host at the other end.
    """

    host: str
    data_address: str
    tls_fingerprint: str | None


Link1: TypeAlias = str


Transfer1: TypeAlias = str


class PlanBody(TypedDict):
    """
    Plan what has not yet been sent anew, all transfers together, and keep every promise. Without restrictions: all that may move.
    """

    objective: NotRequired[Literal["congestion", "admitted", "volume", "completion"]]
    project: NotRequired[str | None]
    links: NotRequired[list[Link1] | None]
    transfers: NotRequired[list[Transfer1] | None]
    time_limit_s: NotRequired[int]
    review_s: NotRequired[int]
    apply: NotRequired[bool]


class Planner(TypedDict):
    """
    A planner and its traits.
    """

    name: str
    about: str
    books: bool
    joint: bool
    eager: bool
    late: bool
    fixed_rate: bool
    takes_turns: bool
    time_limit: bool
    default: bool


class Promises(TypedDict):
    """
    How promises stand.
    """

    live: LivePromises
    day: EndedPromises
    endangered: list[Endangered]


PathItem: TypeAlias = str


Planner1: TypeAlias = str


class RefusalReason(TypedDict):
    """
    How often requests were refused for one reason.
    """

    reason: str
    hour: int
    day: int


class ReportsBody(TypedDict):
    """
    What an agent has to say: reports, its clock, itself.
    """

    clock: NotRequired[AgentClock | None]
    agent: NotRequired[AboutAgent | None]
    reports: NotRequired[list[AgentReport]]
    revision: NotRequired[int | None]
    complete: NotRequired[bool]
    goodbye: NotRequired[bool]


class Revision(TypedDict):
    """
    There is something new for an agent.
    """

    revision: int


class RevisionMessage(TypedDict):
    """
    One message, by the fields of text/event-stream. Between messages come comments, as signs of life.
    """

    event: Literal["revision"]
    data: Revision


class Scheduled(TypedDict):
    """
    A transfer on the schedule.
    """

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


class Segment(TypedDict):
    """
    A row of a plan.
    """

    begin: str
    end: str
    rate_bps: int
    path: list[str]


class Session(TypedDict):
    """
    Who is calling.
    """

    id: str
    name: str
    scopes: list[str]
    expires: str | None


class SessionBody(TypedDict):
    """
    A sign-in by token.
    """

    token: str


class SignalPeer(TypedDict):
    """
    The sender at the other end of a start signal.
    """

    transfer_id: str
    host: str
    data_address: str
    key: str


class StartAfter(TypedDict):
    """
    What a successor's sender waits for.
    """

    predecessor: SignalPeer
    kind: Literal["clock", "direct", "broker"]
    early_from: str | None
    timeout_us: int
    on_timeout: Literal["start", "cancel"]
    released: bool


class StartSignal(TypedDict):
    """
    On what a transfer starts that has a predecessor (`after`), and what happens when the signal does not come (RR-6205, section 2.2).
    """

    kind: NotRequired[Literal["clock", "direct", "broker"]]
    timeout_s: NotRequired[float | None]
    on_timeout: NotRequired[Literal["start", "cancel"]]
    on_overrun: NotRequired[Literal["delay", "fallback"]]


State: TypeAlias = Literal["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"]


class States(TypedDict):
    """
    Live transfers now, and those that ended in the last 24 hours.
    """

    HELD: int
    RESERVED: int
    ACTIVE: int
    FINISHED: int
    FAILED: int
    CANCELED: int
    EXPIRED: int


Step = TypedDict(
    "Step",
    {
        "from": str,
        "bps": int,
    },
)


class TakenReport(TypedDict):
    """
    A report that was taken.
    """

    transfer_id: str
    sequence: int


class TokenBody(TypedDict):
    """
    A new token.
    """

    name: str
    scopes: list[Literal["read", "submit", "operate", "admin"]]
    expires: NotRequired[str | None]
    limits: NotRequired[LimitsBody]


class TokenChangeBody(TypedDict):
    """
    A change of a token.
    """

    limits: LimitsBody


class TokenInUse(TypedDict):
    """
    A token, and what would no longer go on without it.
    """

    id: str
    name: str
    scopes: list[str]
    host: str | None
    created: str
    expires: str | None
    revoked: str | None
    last_used: str | None
    sessions: int
    transfers: int
    limits: dict[str, Limit]
    revision: int


class TopologyLink(TypedDict):
    """
    A link of a topology.
    """

    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: int | None
    channel_bps: int | None
    slot_us: int
    metric: int | None
    available: list[dict[str, Any]]


class TransferChange(TypedDict):
    """
    The fields that are given change, all others stay as they are; null takes a limit away.
    """

    volume_bytes: NotRequired[int]
    duration_s: NotRequired[float]
    rate_max_bps: NotRequired[int | None]
    rate_min_bps: NotRequired[int | None]
    not_before: NotRequired[str | None]
    deadline: NotRequired[str | None]
    priority: NotRequired[int]
    planner: NotRequired[str]
    label: NotRequired[str | None]
    project: NotRequired[str | None]
    metadata: NotRequired[dict[str, Any] | None]
    paths: NotRequired[int]
    path: NotRequired[list[PathItem] | None]
    split: NotRequired[bool]
    shortest_segment_s: NotRequired[float | None]
    most_segments: NotRequired[int | None]
    best_effort: NotRequired[bool]


class TransferRequest(TypedDict):
    """
    Move `volume_bytes` from `source` to `destination`, or hold capacity there for `duration_s`: nodes or enrolled hosts.
    """

    source: str
    destination: str
    volume_bytes: NotRequired[int | None]
    duration_s: NotRequired[float | None]
    rate_max_bps: NotRequired[int | None]
    rate_min_bps: NotRequired[int | None]
    not_before: NotRequired[str | None]
    deadline: NotRequired[str | None]
    hosts_up_from: NotRequired[str | None]
    priority: NotRequired[int]
    planner: NotRequired[str]
    project: NotRequired[str | None]
    label: NotRequired[str | None]
    hold: NotRequired[bool]
    mode: NotRequired[Literal["reserve", "managed", "wrapped", "observed"] | None]
    payload: NotRequired[Payload | None]
    mechanism: NotRequired[Literal["pacing", "htb", "fq", "window", "userland"] | None]
    after: NotRequired[str | int | None]
    signal: NotRequired[StartSignal | None]
    metadata: NotRequired[dict[str, Any] | None]
    paths: NotRequired[int]
    path: NotRequired[list[PathItem] | None]
    split: NotRequired[bool]
    shortest_segment_s: NotRequired[float | None]
    most_segments: NotRequired[int | None]
    best_effort: NotRequired[bool]
    preempt: NotRequired[bool]


class WaitingReason(TypedDict):
    """
    Why a transfer waits, or is slower than promised.
    """

    code: str
    detail: str
    limited_by: str | None
    until: str | None


class Window(TypedDict):
    """
    A window of reduced capacity.
    """

    id: str
    begin: str
    end: str
    bps: int
    kind: str
    reason: str | None


class WindowBody(TypedDict):
    """
    On [begin, end) no more than `bps` of the link may be used.
    """

    begin: str
    end: str
    bps: NotRequired[int]
    kind: NotRequired[Literal["maintenance", "outage", "background"]]
    reason: NotRequired[str | None]
    on_broken: NotRequired[Literal["refuse", "replan"]]


class AuditLogPage(TypedDict):
    """
    A page of the audit log.
    """

    items: list[Event]
    next: str | None


class BindingLink(TypedDict):
    """
    The link that is in the way, when, and the transfers that hold it then.
    """

    link: str
    interval: Interval
    reservations: list[str]


class Calendar(TypedDict):
    """
    A link's calendar as steps.
    """

    link: str
    reverse: NotRequired[str | None]
    begin: str
    end: str
    decimated: bool
    steps: list[CalendarStep]


class Decisions(TypedDict):
    """
    What was asked for: in the last 60 minutes, in the last 24 hours, and in each hour of these.
    """

    admitted_hour: int
    admitted_day: int
    refused_hour: int
    refused_day: int
    reasons: list[RefusalReason]
    hours: list[DecisionsHour]


class EndSignal(TypedDict):
    """
    Whom a predecessor's sender tells that the link is free.
    """

    successor: SignalPeer
    kind: Literal["clock", "direct", "broker"]
    timeout_us: int
    on_overrun: Literal["delay", "fallback"]


class EventMessage(TypedDict):
    """
    One message, by the fields of text/event-stream. One without `event` and `data` only moves the id on.
    """

    id: str
    event: NotRequired[EventName]
    data: NotRequired[Event]


class Host(TypedDict):
    """
    A host and its agent.
    """

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


class Job(TypedDict):
    """
    A job, its progress and its result.
    """

    id: str
    kind: Literal["plan", "simulation"]
    state: JobState
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


class JobPage(TypedDict):
    """
    A page of jobs.
    """

    items: list[Job]
    next: str | None


class Link(TypedDict):
    """
    A link with its windows.
    """

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


class LinkBody(TypedDict):
    """
    A directed link, as in NET.json.
    """

    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: NotRequired[int | None]
    channel_bps: NotRequired[int | None]
    slot_us: NotRequired[int]
    metric: NotRequired[int | None]
    available: NotRequired[list[Step]]


class LinkBookings(TypedDict):
    """
    A link's bookings by transfer.
    """

    link: str
    begin: str
    end: str
    transfers: list[LinkUser]
    rest: OtherUsers
    measured: Measured


class LinkChangeBody(TypedDict):
    """
    The fields that are given change, all others stay as they are.
    """

    capacity_bps: NotRequired[int]
    mtu_bytes: NotRequired[int | None]
    channel_bps: NotRequired[int | None]
    slot_us: NotRequired[int]
    metric: NotRequired[int | None]
    available: NotRequired[list[Step]]
    on_broken: NotRequired[Literal["refuse", "replan"]]


class NetworkBody(TypedDict):
    """
    NET.json.
    """

    links: list[LinkBody]


class Outcome(TypedDict):
    """
    What became, or in a preview would become, of a transfer that loses its place on a link.
    """

    id: str
    label: str | None
    source: str
    destination: str
    priority: int
    state: Literal["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"]
    limited_by: str
    promised_finish: str | None
    finish_before: str | None
    finish: str | None
    broken: bool
    reason: WaitingReason | None


class Overview(TypedDict):
    """
    What an operator looks at first.
    """

    at: str
    promises: Promises
    decisions: Decisions
    transfers: States
    agents: Agents
    links: LinksNow


class Plan(TypedDict):
    """
    A plan with its metrics.
    """

    planner: str
    start: str | None
    finish: str | None
    segments: list[Segment]
    paths: list[list[str]]
    metrics: dict[str, float | int | None]


class Problem(TypedDict):
    """
    Why a request was refused (RFC 9457). The type determines which members explain it; new members may be added.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: NotRequired[str]
    errors: NotRequired[list[FieldError]]
    errors_total: NotRequired[int]
    binding: NotRequired[BindingLink | None]
    counter_offers: NotRequired[list[CounterOffer]]
    offers_omitted: NotRequired[str]
    broken: NotRequired[list[BrokenPromise]]
    broken_total: NotRequired[int]
    retry_after_s: NotRequired[float]
    limit: NotRequired[Any]
    limit_bytes: NotRequired[int]
    scope: NotRequired[str]
    state: NotRequired[str]
    revision: NotRequired[int]
    host: NotRequired[str]
    unheard_since: NotRequired[str]


class Quote(TypedDict):
    """
    What one planner would answer.
    """

    planner: str
    books: bool
    admitted: bool
    plan: Plan | None
    problem: Problem | None


class QuoteRequest(TypedDict):
    """
    A transfer request to be answered by several planners, without booking.
    """

    source: str
    destination: str
    volume_bytes: NotRequired[int | None]
    duration_s: NotRequired[float | None]
    rate_max_bps: NotRequired[int | None]
    rate_min_bps: NotRequired[int | None]
    not_before: NotRequired[str | None]
    deadline: NotRequired[str | None]
    hosts_up_from: NotRequired[str | None]
    priority: NotRequired[int]
    planner: NotRequired[str]
    project: NotRequired[str | None]
    label: NotRequired[str | None]
    hold: NotRequired[bool]
    mode: NotRequired[Literal["reserve", "managed", "wrapped", "observed"] | None]
    payload: NotRequired[Payload | None]
    mechanism: NotRequired[Literal["pacing", "htb", "fq", "window", "userland"] | None]
    after: NotRequired[str | int | None]
    signal: NotRequired[StartSignal | None]
    metadata: NotRequired[dict[str, Any] | None]
    paths: NotRequired[int]
    path: NotRequired[list[PathItem] | None]
    split: NotRequired[bool]
    shortest_segment_s: NotRequired[float | None]
    most_segments: NotRequired[int | None]
    best_effort: NotRequired[bool]
    preempt: NotRequired[bool]
    planners: NotRequired[list[Planner1] | None]


class Quotes(TypedDict):
    """
    What each planner would answer.
    """

    quotes: list[Quote]


class ReportsTaken(TypedDict):
    """
    What became of the reports.
    """

    accepted: list[TakenReport]
    ignored: list[IgnoredReport]
    revision: int
    server_time: str
    server_took_us: int


class Schedule(TypedDict):
    """
    What happens when.
    """

    begin: str
    end: str
    items: list[Scheduled]
    next: str | None


class SimulationBody(TypedDict):
    """
    A specification as `bwb simulate` takes it (docs/simulation.md), and the network to run it on.
    """

    network: NotRequired[Literal["current"] | NetworkBody]


class Topology(TypedDict):
    """
    The network without hosts' NICs and without windows.
    """

    links: list[TopologyLink]
    nodes: list[Node]
    revision: int


class TopologyBody(TypedDict):
    """
    The links of NET.json: what GET /v1/topology answers can be sent back as it is.
    """

    links: list[LinkBody]
    nodes: NotRequired[list[NodeBody] | None]
    prune: NotRequired[bool]
    on_broken: NotRequired[Literal["refuse", "replan"]]
    revision: NotRequired[int | None]


class TopologyChange(TypedDict):
    """
    What a new topology changed.
    """

    replanned: list[str]
    broken: list[str]
    outcomes: list[Outcome]
    preview: bool
    created: list[str]
    changed: list[str]
    deleted: list[str]
    unchanged: int
    cut_off: list[str]
    revision: int


class Transfer(TypedDict):
    """
    A transfer with its plan.
    """

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
    outlook: NotRequired[Outlook | None]


class TransferPage(TypedDict):
    """
    A page of transfers.
    """

    items: list[Transfer]
    next: str | None
    total: NotRequired[int | None]


class TransferPreview(TypedDict):
    """
    What a change would make of the transfer. Nothing was changed.
    """

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
    outlook: NotRequired[Outlook | None]
    preview: Literal[True]
    freed: list[Segment]
    moved: list[Moved]


class WindowAdded(TypedDict):
    """
    A link after a window was added.
    """

    replanned: list[str]
    broken: list[str]
    outcomes: list[Outcome]
    preview: bool
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
    window: str


class Assignment(TypedDict):
    """
    One transfer's part for one agent.
    """

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
    mechanism: Literal["pacing", "htb", "fq", "window", "userland"] | None
    match: FlowMatchOut | None
    start_after: StartAfter | None
    end_signals: list[EndSignal]
    peer: Peer
    key: str


class Assignments(TypedDict):
    """
    Everything that a host's agent has to do: its desired state.
    """

    host: str
    revision: int
    server_time: str
    server_took_us: int
    fallback_rate_bps: int
    assignments: list[Assignment]


class BatchItem(TypedDict):
    """
    What became of an item of a batch.
    """

    status: int
    transfer: NotRequired[Transfer | None]
    problem: NotRequired[Problem | None]


class LinkChange(TypedDict):
    """
    A link after a change.
    """

    replanned: list[str]
    broken: list[str]
    outcomes: list[Outcome]
    preview: bool
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


class LinkDeleted(TypedDict):
    """
    What deleting a link did.
    """

    replanned: list[str]
    broken: list[str]
    outcomes: list[Outcome]
    preview: bool
    id: str
    deleted: bool


class Batch(TypedDict):
    """
    What became of a batch.
    """

    items: list[BatchItem]
