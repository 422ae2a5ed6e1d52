# SPDX-License-Identifier: Apache-2.0
"""Chains on one link between hosts: h1 and h3 at A, h2 and h4 at B, 1 Gbit/s in between."""

from typing import Any

from broker.core.network import Link
from broker.core.transfer import Action
from broker.core.units import US_PER_S
from broker.desk.admission.ask import Ask
from broker.desk.lifecycle.transitions import End
from broker.store.transfers import Transfer, get_many
from tests.asks import FILE
from tests.desk.world import GBIT, World

SECOND = 125_000_000  # bytes, at 1 Gbit/s
L1 = Link("L1", "A", "B", GBIT)


async def network(w: World, *links: Link, nic_bps: int = 10 * GBIT) -> None:
    await w.links(*(links or (L1,)))
    for host, node in (("h1", "A"), ("h2", "B"), ("h3", "A"), ("h4", "B")):
        await w.nic(host, node, nic_bps)


def sent(w: World, seconds: float = 10, source: str = "h1", destination: str = "h2", **more: Any) -> Ask:
    """A managed transfer of so many seconds of the whole link, margin apart."""
    return w.ask(int(seconds * SECOND), source, destination, payload=FILE, **more)


async def booked(w: World, *asks: Ask, desk: int = 0) -> list[Transfer]:
    made = await w.admit(*asks, desk=desk)
    for transfer in made:
        assert isinstance(transfer, Transfer), transfer
    return [transfer for transfer in made if isinstance(transfer, Transfer)]


async def chain_of(w: World, number: int, **more: Any) -> list[Transfer]:
    """Each after the one before."""
    made: list[Transfer] = []
    for _ in range(number):
        made += await booked(w, sent(w, **more, after=made[-1].id if made else None))
    return made


async def now(w: World, *transfers: Transfer) -> list[Transfer]:
    async with w.look.transaction() as connection:
        found = await get_many(connection, [transfer.id for transfer in transfers])
    return [found[transfer.id] for transfer in transfers]


async def end(w: World, transfer: Transfer, action: Action = Action.FINISH, desk: int = 0) -> None:
    await w.do(End(transfer.id, "me", action=action), desk)


def seconds(w: World, time_us: int | None) -> float:
    """From the present on."""
    assert time_us is not None
    return (time_us - w.clock.now_us) / US_PER_S


def reads(transfer: Transfer) -> tuple[Any, ...]:
    """What a successor must not lose: its rates and its volume, whenever they are."""
    begin = transfer.segments[0].begin_us
    return tuple((s.begin_us - begin, s.end_us - begin, s.rate_bps, s.path) for s in transfer.segments)
