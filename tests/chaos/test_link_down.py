# SPDX-License-Identifier: Apache-2.0
"""Links go down, come back, shrink and vanish under a thousand live transfers while clients book at two processes.

No instant is over capacity, now or then; every promise is kept, or withdrawn with a reason that names the link; no 5xx.
"""

import asyncio
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from broker.core.units import format_time, parse_time
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store import audit, transfers
from broker.store.session import Database
from tests.chaos.api import Api
from tests.postgres import Server
from tests.service import checked

pytestmark = pytest.mark.real_time

LIVE = 1_000
CLIENTS = 16
NODES = [f"n{number}" for number in range(8)]
CAPACITY = 10**10
PAUSE_S = 3.0  # between changes of the network: that long the clients book on each


@dataclass
class Told:
    """What clients and operator were told."""

    promised: dict[str, str] = field(default_factory=dict)  # transfer -> finish
    cancelled: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    audits: int = 0
    replanned: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)  # links that lost capacity
    slowest_s: float = 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(os.environ.get("BWB_CHAOS_SEED", "1"))])
async def test_links_come_and_go_under_a_thousand_transfers(seed: int, durable: Server) -> None:
    print(f"seed {seed} (BWB_CHAOS_SEED)")
    dice = random.Random(seed)
    url = durable.new_database()
    database = Database(url, pool_size=4)
    scopes = (Scope.OPERATE, Scope.SUBMIT)
    _, token = await tokens.create(database, time.time_ns() // 1000, name="drill", scopes=scopes, actor="test")
    apis = [Api(url), Api(url)]
    told = Told()
    try:
        await asyncio.gather(*(api.ready() for api in apis))
        limits = httpx.Limits(max_connections=CLIENTS * 2, max_keepalive_connections=CLIENTS * 2)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(headers=headers, timeout=60, limits=limits) as client, asyncio.timeout(300):
            links = mesh(dice)
            checked(await client.put(apis[0].url + "/v1/topology", json={"links": links}))
            await fill(dice, client, apis, told)
            booked = len(told.promised)
            over = asyncio.Event()
            watch = asyncio.create_task(keep_auditing(database, told, over))
            clients = [
                asyncio.create_task(keep_booking(random.Random(f"{seed}/{n}"), client, apis, told, over)) for n in range(CLIENTS)
            ]
            try:
                await drill(dice, client, apis, database, links, told)
            finally:
                over.set()
                await asyncio.gather(watch, *clients)
        print(
            f"{booked} live at first, {len(told.promised) - booked} booked meanwhile, refused {dict(told.refused)}; "
            f"{len(told.replanned)} planned anew, {len(told.broken)} promises withdrawn; {told.audits} audits on the way; "
            f"the slowest booking took {told.slowest_s:.1f} s"
        )
        assert len(told.promised) - booked > 10 * CLIENTS, "the clients hardly got to book"
        await judge(database, told)
    finally:
        for api in apis:
            api.kill()
        await database.close()


def mesh(dice: random.Random) -> list[dict[str, Any]]:
    """A ring both ways, and half of all other links."""
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b and ((a - b) % 8 in (1, 7) or dice.random() < 0.5)]
    return [
        {"id": f"n{a}-n{b}", "source": f"n{a}", "target": f"n{b}", "capacity_bps": CAPACITY, "metric": dice.randrange(1, 4)}
        for a, b in pairs
    ]


def request(dice: random.Random, within_s: int) -> dict[str, Any]:
    source, destination = dice.sample(NODES, 2)
    begin = time.time() + dice.random() * within_s
    body: dict[str, Any] = {
        "source": source,
        "destination": destination,
        "volume_bytes": dice.randrange(10**9, 2 * 10**10),
        "not_before": format_time(int(begin * 1_000_000)),
        "priority": dice.randrange(3),
        "best_effort": dice.random() < 0.3,
        "rate_max_bps": dice.choice((None, 2 * 10**9)),
    }
    if dice.random() < 0.5:
        body["deadline"] = format_time(int((begin + dice.randrange(60, 600)) * 1_000_000))
    return body


async def fill(dice: random.Random, client: httpx.AsyncClient, apis: list[Api], told: Told) -> None:
    while len(told.promised) < LIVE:
        batch = [request(dice, 600) for _ in range(min(200, LIVE - len(told.promised)))]
        for item in checked(await client.post(apis[0].url + "/v1/transfers/batch", json=batch))["items"]:
            if item["status"] == 201:
                told.promised[item["transfer"]["id"]] = item["transfer"]["plan"]["finish"]


async def keep_booking(dice: random.Random, client: httpx.AsyncClient, apis: list[Api], told: Told, over: asyncio.Event) -> None:
    while not over.is_set():
        begin = time.monotonic()
        answer = await client.post(dice.choice(apis).url + "/v1/transfers", json=request(dice, 600))
        told.slowest_s = max(told.slowest_s, time.monotonic() - begin)
        assert answer.status_code in (201, 409, 422), answer.text
        if answer.status_code != 201:
            told.refused[answer.json()["type"].rsplit("/")[-1]] += 1
            continue
        made = answer.json()
        told.promised[made["id"]] = made["plan"]["finish"]
        if dice.random() < 0.3:
            gone = await client.post(f"{dice.choice(apis).url}/v1/transfers/{made['id']}/cancel")
            # An outage may have ended it before.
            assert gone.status_code in (200, 409), gone.text
            if gone.status_code == 200:
                told.cancelled.add(made["id"])
        await asyncio.sleep(dice.random() / 10)


async def keep_auditing(database: Database, told: Told, over: asyncio.Event) -> None:
    """Nothing may be wrong at any time between: what was over capacity for a moment would not be seen afterwards."""
    while not over.is_set():
        async with database.transaction() as connection:
            found = await audit.find_violations(connection, time.time_ns() // 1000)
        assert not any(found.values()), found
        told.audits += 1
        await asyncio.sleep(0.2)


async def drill(
    dice: random.Random, client: httpx.AsyncClient, apis: list[Api], database: Database, links: list[dict[str, Any]], told: Told
) -> None:
    """One change after the other, each first as a preview, at either process."""

    async def change(method: str, path: str, body: Any = None) -> Any:
        place = dice.choice(apis).url + f"/v1/{path}"
        begin = time.monotonic()
        foreseen = checked(await client.request(method, place, json=body, params={"preview": "true"}))
        between = time.monotonic()
        answer = await client.request(method, place, json=body)
        assert answer.status_code in (200, 201), answer.text
        done = answer.json()
        told.replanned.update(done["replanned"])
        told.broken.update(done["broken"])
        print(
            f"{method} {path}: preview {between - begin:.2f} s ({len(foreseen['replanned'])}), done in {time.monotonic() - between:.2f} s, "
            f"{len(done['replanned'])} planned anew, {len(done['broken'])} promises broken"
        )
        await asyncio.sleep(PAUSE_S)
        return done

    down = await busiest(database, told)
    now = time.time()
    outage = {"begin": format_time(int(now * 1_000_000)), "end": format_time(int((now + 900) * 1_000_000)), "kind": "outage"}
    window = (await change("POST", f"links/{down}/windows", outage | {"on_broken": "replan"}))["window"]
    assert told.replanned, "the link was not busy at all"
    await change("DELETE", f"links/{down}/windows/{window}")
    thin = await busiest(database, told)
    for capacity in (CAPACITY // 3, CAPACITY):
        await change("PATCH", f"links/{thin}", {"capacity_bps": capacity, "on_broken": "replan"})
    gone = await busiest(database, told)
    left = [link for link in links if link["id"] != gone]
    done = await change("PUT", "topology", {"links": left, "on_broken": "replan"})
    assert done["deleted"] == [gone] and done["changed"] == done["created"] == []
    done = await change("PUT", "topology", {"links": links, "on_broken": "replan"})
    assert done["created"] == [gone]
    again = await client.put(apis[0].url + "/v1/topology", json={"links": links})
    assert checked(again)["revision"] == done["revision"] and checked(again)["unchanged"] == len(links)


async def busiest(database: Database, told: Told) -> str:
    """The link with the most live transfers ahead."""
    async with database.transaction() as connection:
        found = await transfers.find_unfinished(connection)
    now = time.time_ns() // 1000
    uses = Counter(link_id for t in found for s in t.segments if s.end_us > now for link_id in set(s.path))
    link_id = uses.most_common(1)[0][0]
    told.touched.add(link_id)
    return link_id


async def judge(database: Database, told: Told) -> None:
    async with database.transaction() as connection:
        found = await audit.find_violations(connection, time.time_ns() // 1000)
    assert not any(found.values()), found
    async with database.transaction() as connection:
        rows = await transfers.get_many(connection, told.promised)
        everybody = set((await connection.execute(text("SELECT id FROM transfers"))).scalars())
    assert everybody == set(told.promised) == set(rows)
    withdrawn = 0
    for transfer_id, promised in told.promised.items():
        transfer = rows[transfer_id]
        if transfer_id in told.cancelled:
            assert transfer.state == "CANCELED"
        elif transfer.live and transfer.finish_us is not None and transfer.finish_us <= parse_time(promised):
            assert transfer.spec.deadline_us is None or transfer.finish_us <= transfer.spec.deadline_us
        else:
            withdrawn += 1
            assert transfer_id in told.broken, f"{transfer_id} was promised by {promised} and nobody was told: {transfer}"
            assert transfer.reason is not None and transfer.reason.limited_by in told.touched, transfer
            assert transfer.reason.code in ("capacity_lowered", "capacity_lost", "promise_broken")
    print(f"{withdrawn} promises of {len(rows)} stay withdrawn, each with its reason")
