# SPDX-License-Identifier: Apache-2.0
"""Admission: requests become plans, plans become bookings; and the same question without booking (quotes)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.network import Network, Route
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Request
from broker.core.transfer import Mode, State
from broker.core.units import MAX_TIME_US, MAX_VOLUME_BYTES, US_PER_S, format_time, volume_of
from broker.desk.batch import Batch
from broker.desk.books import Books
from broker.desk.command import Unkeyed
from broker.desk.problems import Problem
from broker.planners import PLANNERS
from broker.planners.offers import binding, counter_offer
from broker.planners.signature import Planner
from broker.store import transfers
from broker.store.idempotency import Key
from broker.store.transfers import Transfer


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator has settled for all requests. Durations in microseconds."""

    hold_us: int = 300 * US_PER_S
    managed_lead_us: int = 1_500_000
    replan_lead_us: int = 500_000
    managed_margin_ppm: int = 10_000
    managed_margin_us: int = 50_000

    def with_margin(self, volume_bytes: int, rate_max_bps: int | None, route: Route | None) -> int:
        """What to book for a managed transfer of so many bytes (Veeraraghavan et al. 2004, section 4.3).

        A share of the volume for retransmission, and a time at full rate for starts and steps that take effect a little late.
        """
        ceiling = route.ceiling_bps if route is not None else 0
        rate = ceiling if rate_max_bps is None else min(rate_max_bps, ceiling)
        share = -(-volume_bytes * self.managed_margin_ppm // 1_000_000)
        return min(volume_bytes + share + volume_of(rate, self.managed_margin_us), MAX_VOLUME_BYTES)


@dataclass(frozen=True, slots=True)
class Ask:
    """A transfer request as it came in, in internal units. `id` is the transfer's id if it is admitted."""

    id: str
    source: str
    destination: str
    volume_bytes: int | None
    duration_us: int | None = None
    rate_max_bps: int | None = None
    rate_min_bps: int | None = None
    not_before_us: int | None = None
    deadline_us: int | None = None
    priority: int = 0
    planner: str = "vbls"
    project: str | None = None
    label: str | None = None
    hold: bool = False
    mode: str | None = None
    payload: dict[str, Any] | None = None
    mechanism: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass(slots=True)
class Admit:
    """Admit each ask for itself: a result is a list of Transfer or Problem, in the order of `asks`."""

    asks: Sequence[Ask]
    owner: str
    policy: Policy
    key: Key | None = None

    def transfer_ids(self) -> Iterable[str]:
        return ()

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        return routed_links(books.network, self.asks)

    def decide(self, batch: Batch) -> list[Transfer | Problem]:
        return [self._admit(ask, batch) for ask in self.asks]

    def answer(self, result: list[Transfer | Problem]) -> Any:
        return [[r.code, r.detail, r.more] if isinstance(r, Problem) else r.id for r in result]

    async def recall(self, connection: AsyncConnection, answer: Any) -> list[Transfer | Problem]:
        found = await transfers.get_many(connection, [item for item in answer if isinstance(item, str)])
        return [found[item] if isinstance(item, str) else Problem(*item) for item in answer]

    def _admit(self, ask: Ask, batch: Batch) -> Transfer | Problem:
        try:
            mode = mode_of(ask, batch.books)
            request = request_of(ask, mode, self.policy, batch.books.network, batch.now_us)
            plan = plan_or_refuse(request, ask.planner, batch)
        except Problem as problem:
            return problem
        transfer = self._transfer(ask, mode, request, plan, batch.now_us)
        batch.book(transfer.id, plan.segments)
        batch.add(transfer, self.owner)
        return transfer

    def _transfer(self, ask: Ask, mode: Mode, request: Request, plan: Plan, now_us: int) -> Transfer:
        assert ask.volume_bytes is not None
        assert request.volume_bytes is not None
        return Transfer(
            id=ask.id,
            state=State.HELD if ask.hold else State.RESERVED,
            mode=str(mode),
            planner=ask.planner,
            source=ask.source,
            destination=ask.destination,
            volume_bytes=ask.volume_bytes,
            booked_bytes=request.volume_bytes,
            rate_max_bps=ask.rate_max_bps,
            rate_min_bps=ask.rate_min_bps,
            not_before_us=request.not_before_us,
            deadline_us=ask.deadline_us,
            priority=ask.priority,
            project=ask.project,
            label=ask.label,
            payload=ask.payload,
            mechanism=ask.mechanism,
            metadata=ask.metadata,
            segments=plan.segments,
            start_us=plan.start_us,
            finish_us=plan.finish_us,
            promised_us=plan.finish_us,
            plan_revision=1,
            plan_from_us=plan.start_us,
            carried_bytes=0,
            hold_until_us=now_us + self.policy.hold_us if ask.hold else None,
            paused=False,
            bytes_done=0,
            measured_bps=None,
            actual_start_us=None,
            actual_finish_us=None,
            checksum=None,
            reason=None,
            owner=self.owner,
            revision=1,
            created_us=now_us,
            updated_us=now_us,
        )


@dataclass(slots=True)
class Quote(Unkeyed):
    """What each planner would answer to `ask` now. Nothing is booked. A result is a plan or a problem per planner."""

    ask: Ask
    planners: Sequence[str]
    policy: Policy

    def transfer_ids(self) -> Iterable[str]:
        return ()

    def links(self, books: Books, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        return routed_links(books.network, [self.ask])

    def decide(self, batch: Batch) -> dict[str, Plan | Problem]:
        mode = mode_of(self.ask, batch.books)
        request = request_of(self.ask, mode, self.policy, batch.books.network, batch.now_us)
        answers: dict[str, Plan | Problem] = {}
        for planner in self.planners:
            try:
                answers[planner] = plan_or_refuse(request, planner, batch)
            except Problem as problem:
                answers[planner] = problem
        return answers


def routed_links(network: Network, asks: Iterable[Ask]) -> set[str]:
    routes = {(ask.source, ask.destination) for ask in asks}
    return {link_id for pair in routes if (route := network.route(*pair)) is not None for link_id in route.path}


def mode_of(ask: Ask, books: Books) -> Mode:
    """The mode asked for, else `managed` when two agents can move a named file, else `reserve`. Raises Problem."""
    for name, node in (("source", ask.source), ("destination", ask.destination)):
        if node in books.drained:
            raise Problem.of_field(name, f"host {node!r} is drained: it finishes what it has and takes nothing new", "conflict")
    both_hosts = ask.source in books.hosts and ask.destination in books.hosts
    has_file = bool(ask.payload and ask.payload.get("path"))
    if ask.mode is None:
        return Mode.MANAGED if both_hosts and has_file else Mode.RESERVE
    mode = Mode(ask.mode)
    if mode in (Mode.WRAPPED, Mode.OBSERVED):
        raise Problem.of_field("mode", f"{mode} transfers are not served by this version; use managed or reserve", "unsupported")
    if mode is Mode.MANAGED:
        for name, node in (("source", ask.source), ("destination", ask.destination)):
            if node not in books.hosts:
                raise Problem.of_field(name, f"a managed transfer needs an enrolled host, {node!r} is none")
        if not has_file:
            raise Problem.of_field(
                "payload.path", "a managed transfer needs the file to send, relative to the sender's served folder"
            )
    return mode


def request_of(ask: Ask, mode: Mode, policy: Policy, network: Network, now_us: int) -> Request:
    """The planning request: not before now (and the agents' lead), margin included. Raises Problem naming the field."""
    lead = policy.managed_lead_us if mode is Mode.MANAGED else 0
    volume = ask.volume_bytes
    if volume is not None and mode is Mode.MANAGED:
        volume = policy.with_margin(volume, ask.rate_max_bps, network.route(ask.source, ask.destination))
    if ask.deadline_us is not None and ask.deadline_us <= now_us:
        raise Problem.of_field("deadline", f"{format_time(ask.deadline_us)} is in the past (now: {format_time(now_us)})")
    request = Request(
        id=ask.id,
        source=ask.source,
        destination=ask.destination,
        volume_bytes=volume,
        not_before_us=max(ask.not_before_us or 0, now_us + lead),
        rate_max_bps=ask.rate_max_bps,
        rate_min_bps=ask.rate_min_bps,
        deadline_us=ask.deadline_us,
        duration_us=ask.duration_us,
        priority=ask.priority,
    )
    if ask.deadline_us is not None and request.deadline_us is not None and request.deadline_us <= request.not_before_us:
        raise Problem.of_field(
            "deadline", f"{format_time(ask.deadline_us)} is not after the earliest start {format_time(request.not_before_us)}"
        )
    problems = list(request.problems())
    if problems:
        errors = [{"field": problem.field, "detail": problem.detail} for problem in problems]
        raise Problem("invalid", "; ".join(f"{problem.field}: {problem.detail}" for problem in problems), {"errors": errors})
    return request


def planner_named(name: str) -> Planner:
    planner = PLANNERS.get(name)
    if planner is None:
        known = ", ".join(sorted(PLANNERS))
        raise Problem.of_field("planner", f"{name!r} is unknown; there are: {known}", "unknown-planner")
    return planner


def plan_or_refuse(request: Request, planner_name: str, batch: Batch) -> Plan:
    """A verified plan on the present calendars; raises Problem with binding link and counter-offers."""
    planner = planner_named(planner_name)
    network, calendars = batch.books.network, batch.books.calendars
    plan = planner.plan(request, network, calendars, fewest_rows=True)
    if isinstance(plan, Plan):
        verify(request, plan, network.links, calendars)
        if plan.finish_us <= MAX_TIME_US:
            return plan
        plan = Refusal("infeasible", "it would not end before the year 10000", "volume_bytes")
    errors = [{"field": plan.field, "detail": plan.detail}] if plan.field else []
    if plan.code == "no_path":
        both_known = request.source in network.nodes and request.destination in network.nodes
        raise Problem("no-path" if both_known else "unknown-node", plan.detail, {"errors": errors})
    if plan.code == "unsupported":
        raise Problem("unsupported", plan.detail, {"errors": errors})
    offer = counter_offer(planner, request, network, calendars)
    offers: list[dict[str, Any]] = []
    if offer.earliest_finish_us is not None:
        finish = format_time(offer.earliest_finish_us)
        offers.append({"kind": "earliest_finish", "finish": finish, "detail": f"without a deadline it would finish at {finish}"})
        offers.append({"kind": "smallest_deadline", "deadline": finish, "detail": f"the same request with the deadline {finish}"})
    if offer.largest_volume_bytes is not None:
        volume = offer.largest_volume_bytes
        offers.append(
            {"kind": "largest_volume", "volume_bytes": volume, "detail": f"{volume} bytes by the deadline that was asked"}
        )
    problem = Problem("infeasible", plan.detail, {"errors": errors, "binding": None, "counter_offers": offers})
    where = binding(request, network, calendars)
    if where is not None:
        problem.more["binding"] = {
            "link": where.link,
            "interval": {"from": format_time(where.begin_us), "to": format_time(where.end_us)},
            "reservations": [],
        }
    raise batch.explain(problem, where)
