# SPDX-License-Identifier: Apache-2.0
"""Which hosts have an agent that can be heard, and the answer to requests that need an agent on another host.

The broker cannot promise a transfer whose agent is down: admission refuses it, or plans it from the time at which the caller says that the
hosts are back (`hosts_up_from`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.transfer import Mode
from broker.core.units import format_time
from broker.desk.admission.ask import Ask
from broker.desk.ground.problems import Problem
from broker.desk.service.timers import describe_due
from broker.store import hosts
from broker.store.hosts import Host


def is_up(host: Host, now_us: int, silence_us: int) -> bool:
    """Was its agent heard lately, and has not said goodbye since?"""
    return host.goodbye_us is None and host.last_seen_us is not None and now_us - host.last_seen_us < silence_us


def agents_needed(ask: Ask) -> tuple[tuple[str, str], ...]:
    """(field, name) of the ends at which a request needs an agent, if they are hosts; without a mode, as `desk.modes` will choose it."""
    spec = ask.spec
    if ask.mode is None and (spec.payload is None or spec.payload.path is None):
        return ()
    match Mode.MANAGED if ask.mode is None else ask.mode:
        case Mode.RESERVE:
            return ()
        case Mode.MANAGED:
            return (("source", spec.source), ("destination", spec.destination))
        case Mode.WRAPPED | Mode.OBSERVED:
            return (("source", spec.source),)


def find_refusal(ask: Ask, known: Mapping[str, Host], now_us: int, silence_us: int) -> Problem | None:
    """Why it cannot be carried out: an agent that it needs is down."""
    ends = [(name, known[end]) for name, end in agents_needed(ask) if end in known]
    if ask.mode is None and len(ends) < 2:
        return None  # between nodes: nothing but a reservation
    for name, host in ends:
        if not is_up(host, now_us, silence_us):
            detail = (
                f"the agent on host {host.name!r} is down ({describe_due(host)}): start it, or say in hosts_up_from when it will be back, "
                "and it is planned from then on"
            )
            problem = Problem.of_field(name, detail, "host-down")
            seen = None if host.last_seen_us is None else format_time(host.last_seen_us)
            problem.more |= {"host": host.name, "last_seen": seen}
            return problem
    return None


async def judge(connection: AsyncConnection, asks: Sequence[Ask], now_us: int, silence_us: int) -> list[Ask]:
    """The asks; those whose agents are down carry the refusal, or begin when their hosts are said to be back."""
    known = await hosts.get_many(connection, {end for ask in asks for _, end in agents_needed(ask)})
    return [_judge(ask, find_refusal(ask, known, now_us, silence_us)) for ask in asks]


def _judge(ask: Ask, down: Problem | None) -> Ask:
    if down is None or ask.unfit is not None:
        return ask
    if ask.hosts_up_from_us is None:
        return replace(ask, unfit=down)
    return ask.changed(not_before_us=max(ask.spec.not_before_us, ask.hosts_up_from_us))
