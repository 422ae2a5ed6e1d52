# SPDX-License-Identifier: Apache-2.0
"""Which hosts know broker time accurately enough to start by the clock alone (RR-6205, section 2.2: signalling by clock).

Only a successor that starts by the clock depends on it: nothing but two accurate clocks keeps it apart from its predecessor on the link. All
other plans do not: agents keep a guard time at booked steps, and signalled successors wait for a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.transfer_spec import SignalKind
from broker.core.units import US_PER_S
from broker.desk.admission.ask import Ask
from broker.desk.ground.problems import Problem
from broker.planners import traits_of
from broker.store import hosts
from broker.store.hosts import Host


@dataclass(frozen=True, slots=True)
class Limits:
    """`error_us`: the largest error bound that will do; `silence_us`: after so long without a word of its clock a host's is unknown."""

    error_us: int
    silence_us: int


def find_trouble(clock: dict[str, Any] | None, now_us: int, limits: Limits) -> str | None:
    """Why a host with this clock (column `hosts.clock`) cannot start by it; None when it can.

    The bound is taken as it was reported: the very exchange that carried the report has made the agent's own better since.
    """
    if clock is None:
        return "its agent has not said yet how well it knows broker time"
    silent_us = now_us - (clock.get("at_us") or 0)
    if silent_us > limits.silence_us:
        return f"its agent said last {silent_us // US_PER_S} s ago how well it knows broker time"
    error_us = int(clock["error_us"])
    if error_us > limits.error_us:
        return f"it knows broker time to {error_us / 1000:.1f} ms only, and the limit is {limits.error_us / 1000:g} ms (BWB_CLOCK_LIMIT_MS)"
    return None


def find_refusal(host: Host | None, now_us: int, limits: Limits) -> Problem | None:
    """The refusal of a successor whose source `host` (None: no enrolled one) would start by a clock that is not good enough."""
    if host is None or (why := find_trouble(host.clock, now_us, limits)) is None:
        return None
    advice = 'run NTP or PTP on it and look at `bwb host show`, or let the successor wait for a word: signal.kind "direct"'
    problem = Problem.of_field("signal.kind", f"host {host.name!r} cannot start by the clock: {why}; {advice}", "clock-uncertain")
    error_us = None if host.clock is None else host.clock["error_us"]
    problem.more |= {"host": host.name, "error_us": error_us, "limit_us": limits.error_us}
    return problem


def begins_by_clock(ask: Ask) -> bool:
    """Does it start on nothing but its host's clock, where another one is to have ended?

    Those that take turns may get their predecessor when they are planned.
    """
    spec = ask.spec
    follows = spec.after is not None or traits_of(spec.planner).takes_turns
    return follows and spec.signal is not None and spec.signal.kind is SignalKind.CLOCK


async def judge(connection: AsyncConnection, asks: Sequence[Ask], now_us: int, limits: Limits) -> list[Ask]:
    """The asks; those whose source has a clock that is too inaccurate carry the refusal."""
    known = await hosts.get_many(connection, {ask.spec.source for ask in asks if begins_by_clock(ask)})
    return [
        replace(ask, unfit=ask.unfit or find_refusal(known.get(ask.spec.source), now_us, limits)) if begins_by_clock(ask) else ask
        for ask in asks
    ]
