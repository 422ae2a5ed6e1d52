# SPDX-License-Identifier: Apache-2.0
"""The locks of a batch, and the replica under those locks.

The order is the same in every process: idempotency keys (`store.idempotency.claim`), links, transfers, hosts, each in key order.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.desk.ground.batch import Batch
from broker.desk.ground.command import Command
from broker.desk.ground.replica import Replica
from broker.desk.planning.replan import find_plannable_links
from broker.store import bookings, token_use, transfers

_NOBODY = transfers.Chained(frozenset(), frozenset())


class Stale(Exception):
    """The network is not the one that the replica knows: load it, and begin the transaction anew.

    Not under the locks of this one: a link with 100,000 steps takes half a second to read, and every other desk would wait for it.
    """


class Restart(Exception):
    """The network or a transfer's path changed between looking and locking: begin the transaction anew."""


async def lock(
    connection: AsyncConnection,
    replica: Replica,
    commands: Sequence[Command[Any]],
    clock: Callable[[], int],
    every_link: bool,
    *,
    fresh: bool = False,
) -> Batch:
    """Lock links, then transfers; bring the replica up to date. Raises Stale where the network has changed, Restart where a chain has.

    A command can move the successors of a transfer that it names (`handover`), so they and their links are locked with it.
    `every_link`: a planner may look anywhere. `fresh`: nothing will be written that would show what tokens have booked meanwhile.
    """
    replica.looked_us = clock()
    named = {transfer_id for command in commands for transfer_id in command.transfer_ids()}
    chain = await transfers.find_chained(connection, named) if named else _NOBODY
    seen = await transfers.get_many(connection, chain.behind) if named else {}
    wanted = {link_id for transfer in seen.values() for link_id in transfer.links()}
    for transfer_id in chain.behind - named:
        wanted |= find_plannable_links(replica, seen[transfer_id].spec)
    for command in commands:
        wanted |= command.links(replica, seen)
    if every_link:
        wanted |= replica.records.keys()
    locked = await bookings.lock(connection, wanted)
    # A link that was deleted while we waited for its lock is known to the replica and missing from the heads.
    deleted = any(link_id in replica.records and link_id not in locked.heads for link_id in wanted)
    if deleted or locked.topology_version != replica.topology_version or not replica.is_current(locked.heads):
        raise Stale
    found = await transfers.get_many(connection, chain.behind | chain.ahead, lock=True) if named else {}
    if any(not found[name].links() <= wanted for name in chain.behind & found.keys()):
        raise Restart
    if named and await transfers.find_chained(connection, named) != chain:
        raise Restart  # a transfer joined or left the chain before its first rows were locked
    # The time is read under the locks: a desk that waited for them must not book what has passed meanwhile.
    now_us = clock()
    await replica.catch_up(connection, locked.heads, now_us)
    batch = Batch(replica, {link_id: head.version for link_id, head in locked.heads.items()}, found, now_us)
    limited = {command.account.owner for command in commands if command.account.counts}
    unknown = {owner for owner in limited if fresh or owner in replica.watched or owner not in replica.uses}
    if unknown:
        replica.uses.update(await token_use.read(connection, unknown))
        replica.watched -= unknown
        batch.counted = frozenset(unknown)
    return batch


async def lock_everything(connection: AsyncConnection, replica: Replica, clock: Callable[[], int]) -> dict[str, int]:
    """Lock the network and every link, and bring the replica up to date; the head of each link."""
    await bookings.lock_topology(connection)
    await replica.load_topology(connection)
    locked = await bookings.lock(connection, replica.records)
    await replica.catch_up(connection, locked.heads, clock())
    return {link_id: head.version for link_id, head in locked.heads.items()}
