# SPDX-License-Identifier: Apache-2.0
"""The loss of a busy link of a real network with 1e4 live transfers: how long until every one of them has a plan again, or a reason."""

import asyncio
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from broker.core.identifiers import identifier
from broker.core.network import Link
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask
from broker.desk.ground.command import Preview
from broker.desk.ground.policy import Policy
from broker.desk.network.links import AddWindow
from broker.desk.network.topology import PutTopology
from broker.desk.service.desk import Desk
from broker.store import audit, transfers
from broker.store.bookings import WindowRecord
from broker.store.session import Database
from tests.asks import make_ask
from tests.postgres import temporary_server

_ESNET = Path(__file__).parents[1] / "data/esnet-network.json"
_DAY_US = 24 * 3600 * US_PER_S
_BATCH = 1000


def _clock() -> int:
    return time.time_ns() // 1000


def _asks(dice: random.Random, routers: list[str], number: int) -> list[Ask]:
    """Between any two routers, some time within the next day, half of them with a deadline."""
    now = _clock() + 600 * US_PER_S
    asks = []
    for _ in range(number):
        source, destination = dice.sample(routers, 2)
        begin = now + dice.randrange(_DAY_US)
        asks.append(
            make_ask(
                identifier("tr", _clock(), os.urandom(10)),
                source,
                destination,
                int(10 ** dice.uniform(11, 12.5)),
                not_before_us=begin,
                deadline_us=begin + 6 * 3600 * US_PER_S if dice.random() < 0.5 else None,
                rate_max_bps=dice.choice((None, 10**10, 4 * 10**10)),
                priority=dice.randrange(3),
            )
        )
    return asks


async def _drill(database: Database, others: Database, wanted: int, seed: int) -> dict[str, Any]:
    dice = random.Random(seed)
    desk, other = Desk(database, _clock, Policy()), Desk(others, _clock, Policy())
    runners = [asyncio.create_task(each.run()) for each in (desk, other)]
    links = [Link(**item) for item in json.loads(_ESNET.read_text())["links"]]
    routers = sorted({link.source for link in links})
    begin = time.perf_counter()
    await desk.submit(PutTopology(links, "bench"))
    imported = time.perf_counter() - begin
    live = 0
    while live < wanted:
        results = await desk.submit(Admit(_asks(dice, routers, min(_BATCH, wanted - live)), "bench", Policy()))
        live += sum(isinstance(result, transfers.Transfer) for result in results)
    async with database.transaction() as connection:
        found = await transfers.find_unfinished(connection)
    uses = Counter(link_id for transfer in found for link_id in transfer.links())
    busiest, crossing = uses.most_common(1)[0]
    window = WindowRecord("win_bench", busiest, _clock(), _clock() + 2 * _DAY_US, 0, "outage", "drill")
    lost = AddWindow(window, "bench", True, Policy())

    begin = time.perf_counter()
    foreseen = await desk.submit(Preview(lost))
    preview = time.perf_counter() - begin
    await other.warm_up()
    begin = time.perf_counter()
    work = asyncio.create_task(desk.submit(lost))
    await asyncio.sleep(0.05)  # another process books meanwhile: this is how long it waits for the locks
    other_begin = time.perf_counter()
    await other.submit(Admit(_asks(dice, routers, 1), "bench", Policy()))
    waited = time.perf_counter() - other_begin
    done = await work
    took = time.perf_counter() - begin
    async with database.transaction() as connection:
        violations = await audit.find_violations(connection, _clock())
    assert not any(violations.values()), violations
    assert [outcome.id for outcome in foreseen.outcomes] == [outcome.id for outcome in done.outcomes]
    for runner in runners:
        runner.cancel()
    return {
        "live_transfers": live,
        "links": len(links),
        "import_s": round(imported, 2),
        "link": busiest,
        "crossing": crossing,
        "planned_anew": len(done.outcomes),
        "promises_broken": sum(outcome.broken for outcome in done.outcomes),
        "preview_s": round(preview, 2),
        "replan_s": round(took, 2),
        "another_desk_waited_s": round(waited, 2),
        "seed": seed,
    }


def measure(transfers_wanted: int = 10_000, seed: int = 1) -> dict[str, Any]:
    with temporary_server(durable=True) as postgres:
        url = postgres.new_database()

        async def drill() -> dict[str, Any]:
            database, others = Database(url), Database(url)
            try:
                return await _drill(database, others, transfers_wanted, seed)
            finally:
                await database.close()
                await others.close()

        return asyncio.run(drill())


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
