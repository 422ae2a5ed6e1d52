# SPDX-License-Identifier: Apache-2.0
"""A transfer request as admission sees it: the token's permission, the resolved mode and start, and the request to the planner."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broker.core.network import Network
from broker.core.request import Request
from broker.core.transfer import Mode
from broker.core.transfer_spec import SignalKind, TransferSpec
from broker.core.units import MICROBITS_PER_BYTE, format_time
from broker.desk.ground import start_signals
from broker.desk.ground.batch import Batch
from broker.desk.ground.limits import Account, refuse_stranger, refuse_wish
from broker.desk.ground.modes import mode_of
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Replica
from broker.desk.planning.counter_offers import Question
from broker.desk.planning.plan import (
    find_routed_links,
    find_routes,
    make_planner_request,
)
from broker.planners import traits_of


@dataclass(frozen=True, slots=True)
class Ask:
    """A transfer request: what it asks for, and how it is to be admitted. `id` is the transfer's id if it is admitted."""

    id: str
    spec: TransferSpec
    mode: Mode | None = None
    hold: bool = False
    preempt: bool = False
    hosts_up_from_us: int | None = None  # when its hosts are said to be back, should they be down now
    unfit: Problem | None = None  # why its hosts cannot do it, if that is known already

    def changed(self, **values: Any) -> "Ask":
        """With other values of fields of its spec."""
        return replace(self, spec=replace(self.spec, **values))


def find_asked_links(asks: Iterable[Ask], replica: Replica, planners: Sequence[str] = ()) -> set[str]:
    """Every link that plans for the asks may book; `planners`: in place of the one that each ask names."""
    found: set[str] = set()
    alike: set[tuple[Any, ...]] = set()
    for ask in asks:
        spec = ask.spec
        not_before = max(spec.not_before_us, replica.looked_us)
        fixed = any(traits_of(name).fixed_rate for name in planners or (spec.planner,))
        rates = _fixed_rates(spec, not_before) if fixed else frozenset()
        key = (spec.source, spec.destination, spec.options, spec.rate_min_bps, not_before, spec.deadline_us, rates)
        if key not in alike:
            alike.add(key)
            found |= find_routed_links(replica, *key)
    return found


def _fixed_rates(spec: TransferSpec, not_before_us: int) -> frozenset[int]:
    """Rates below which a link is of no use to planners that hold one rate throughout."""
    even = None
    if spec.volume_bytes is not None and spec.deadline_us is not None and spec.deadline_us > not_before_us:
        even = -(-spec.volume_bytes * MICROBITS_PER_BYTE // (spec.deadline_us - not_before_us))
    return frozenset(rate for rate in (spec.rate_max_bps, even) if rate)


def refuse_ask(ask: Ask, batch: Batch, account: Account) -> None:
    """Raises Problem where the token may not ask for that, whatever is free."""
    refuse_wish(
        account, batch.now_us, priority=ask.spec.priority, not_before_us=ask.spec.not_before_us, deadline_us=ask.spec.deadline_us
    )
    refuse_stranger(account, batch, ask.spec.after)


def resolve_ask(ask: Ask, batch: Batch) -> tuple[Mode, TransferSpec]:
    """Its mode and the spec for the planner: a successor begins no earlier than its predecessor is planned to finish.

    Raises Problem naming the field.
    """
    spec = ask.spec
    mode = mode_of(spec, ask.mode, ask.unfit, batch.replica)
    if spec.after is None:
        # Those that take turns are chained where they meet (`turns`); the signal says how.
        if spec.signal is not None and not traits_of(spec.planner).takes_turns:
            raise Problem.of_field("signal", "says on what a successor begins; name its predecessor in `after`")
        return mode, spec
    predecessor = start_signals.predecessor_of(batch, spec.after, mode)
    if spec.signal is not None and spec.signal.kind is SignalKind.CLOCK:
        return mode, spec
    assert predecessor.finish_us is not None
    turn_us = predecessor.finish_us + start_signals.word_us(spec.signal)
    if spec.deadline_us is not None and spec.deadline_us <= turn_us:
        word = " and the broker's word has arrived" if turn_us > predecessor.finish_us else ""
        detail = f"{format_time(spec.deadline_us)} is not after {format_time(turn_us)}, when {spec.after} is to have finished{word}"
        raise Problem.of_field("deadline", detail)
    return mode, replace(spec, not_before_us=max(spec.not_before_us, turn_us))


def earliest_start(spec: TransferSpec, mode: Mode, policy: Policy, now_us: int) -> int:
    """Not before what was asked, nor before its agents can have heard of it."""
    lead = 0 if mode is Mode.RESERVE else policy.managed_lead_us
    return max(spec.not_before_us, now_us + lead)


def make_question(transfer_id: str, spec: TransferSpec, mode: Mode, policy: Policy, network: Network) -> Question:
    """What was asked, so that counter-offers can ask the same with other values."""

    def again(altered: TransferSpec, now_us: int) -> Request:
        return make_request(transfer_id, altered, mode, policy, network, now_us)

    return Question(spec, again)


def make_request(transfer_id: str, spec: TransferSpec, mode: Mode, policy: Policy, network: Network, now_us: int) -> Request:
    """The planning request: not before now (and the agents' lead), margin included. Raises Problem naming the field."""
    volume = spec.volume_bytes
    if volume is not None and mode is not Mode.RESERVE:
        volume = policy.with_margin(volume, spec.rate_max_bps, find_routes(network, spec.source, spec.destination, spec.options))
    deadline = spec.deadline_us
    if deadline is not None and deadline <= now_us:
        raise Problem.of_field("deadline", f"{format_time(deadline)} is in the past (now: {format_time(now_us)})")
    request = make_planner_request(
        transfer_id, spec, volume, earliest_start(spec, mode, policy, now_us), duration_us=spec.duration_us
    )
    if deadline is not None and deadline <= request.not_before_us:
        detail = f"{format_time(deadline)} is not after the earliest start {format_time(request.not_before_us)}"
        raise Problem.of_field("deadline", detail)
    problems = list(request.problems())
    if problems:
        errors = [{"field": problem.field, "detail": problem.detail} for problem in problems]
        raise Problem("invalid", "; ".join(f"{problem.field}: {problem.detail}" for problem in problems), {"errors": errors})
    return request
