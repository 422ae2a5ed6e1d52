# SPDX-License-Identifier: Apache-2.0
"""kill -9 of API processes and of PostgreSQL while clients book: nothing overbooked, nothing that was answered lost, nothing done twice."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.store import audit
from broker.store.session import Database
from tests.chaos.api import Api
from tests.postgres import Server
from tests.service import checked

pytestmark = pytest.mark.real_time

REQUESTS = 5_000
CLIENTS = 16
KILLS = 20
LINKS = (("L1", "A", "B"), ("L2", "B", "C"), ("L3", "C", "D"), ("L4", "A", "D"))
ROUTES = (("A", "B"), ("B", "C"), ("C", "D"), ("A", "C"), ("B", "D"), ("A", "D"))


@dataclass
class Record:
    """What the clients were told."""

    booked: dict[str, str] = field(default_factory=dict)  # idempotency key -> transfer
    refused: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    repeated: Counter[str] = field(default_factory=Counter)

    @property
    def answered(self) -> int:
        return len(self.booked) + len(self.refused)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(os.environ.get("BWB_CHAOS_SEED", "1"))])
async def test_nothing_is_lost_doubled_or_overbooked(seed: int, durable: Server) -> None:
    print(f"seed {seed} (BWB_CHAOS_SEED)")
    url = durable.new_database()
    database = Database(url, pool_size=2)
    _, token = await tokens.create(database, time.time_ns() // 1000, name="chaos", scopes=(Scope.OPERATE,), actor="test")
    apis = [Api(url), Api(url)]
    try:
        await asyncio.gather(*(api.ready() for api in apis))
        headers = {"Authorization": f"Bearer {token}"}
        limits = httpx.Limits(max_connections=CLIENTS * 2, max_keepalive_connections=CLIENTS * 2)
        async with httpx.AsyncClient(headers=headers, timeout=20, limits=limits) as client, asyncio.timeout(400):
            for link, source, target in LINKS:
                body = {"id": link, "source": source, "target": target, "capacity_bps": 10**9}
                checked(await client.post(apis[0].url + "/v1/links", json=body), 201)
            record = Record()
            keys = iter(range(REQUESTS))
            begin = time.monotonic()
            killer = asyncio.create_task(kill_at_random(random.Random(seed), record, apis, durable))
            await asyncio.gather(*(book(random.Random(f"{seed}/{n}"), client, apis, keys, record) for n in range(CLIENTS)))
            took = time.monotonic() - begin
            kills = await killer
        print(
            f"{record.answered} requests in {took:.1f} s: {len(record.booked)} booked, {len(record.refused)} refused, "
            f"{len(record.cancelled)} cancelled; sent again {dict(record.repeated)}; kills {dict(kills)}"
        )
        assert sum(kills.values()) == KILLS
        await database.close()  # its connections died with the server
        await judge(database, record)
    finally:
        for api in apis:
            api.kill()
        await database.close()


async def book(dice: random.Random, client: httpx.AsyncClient, apis: list[Api], keys: Iterator[int], record: Record) -> None:
    """A client that goes on asking until it is answered, at whichever process answers, and sometimes asks again afterwards."""
    for number in keys:
        key = f"k{number}"
        source, destination = dice.choice(ROUTES)
        body = {
            "source": source,
            "destination": destination,
            "volume_bytes": dice.randrange(1, 50_000_000),
            "priority": dice.randrange(3),
        }
        if dice.random() < 0.5:
            in_seconds = dice.randrange(10, 200)
            body["deadline"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + in_seconds))
        first = await until_answered(dice, client, apis, "/v1/transfers", record, key, body)
        assert first.status_code in (201, 409, 422), first.text
        if first.status_code == 201:
            record.booked[key] = first.json()["id"]
        else:
            assert first.json()["type"].endswith(("/infeasible", "/invalid")), first.text
            record.refused.add(key)
        if dice.random() < 0.1:
            again = await until_answered(dice, client, apis, "/v1/transfers", record, key, body)
            assert again.status_code == first.status_code
            assert again.json().get("id") == first.json().get("id")
        elif first.status_code == 201 and dice.random() < 0.2:
            gone = await until_answered(dice, client, apis, f"/v1/transfers/{record.booked[key]}/cancel", record)
            assert (gone.status_code, gone.json().get("state")) == (200, "CANCELED"), gone.text
            record.cancelled.add(record.booked[key])


async def until_answered(
    dice: random.Random,
    client: httpx.AsyncClient,
    apis: list[Api],
    path: str,
    record: Record,
    key: str | None = None,
    body: Any = None,
) -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    while True:
        try:
            response = await client.post(dice.choice(apis).url + path, json=body, headers=headers)
        except httpx.TransportError as error:
            record.repeated[type(error).__name__] += 1
        else:
            assert response.status_code != 500, response.text
            if response.status_code != 503:
                return response
            assert "Retry-After" in response.headers
            record.repeated["503"] += 1
        await asyncio.sleep(0.02 + dice.random() * 0.05)


async def kill_at_random(dice: random.Random, record: Record, apis: list[Api], server: Server) -> Counter[str]:
    """At random numbers of answers, so that a fast machine is hit as often as a slow one."""
    kills: Counter[str] = Counter()
    begin = time.monotonic()
    for threshold in sorted(dice.sample(range(50, REQUESTS * 19 // 20), KILLS)):
        while record.answered < threshold:
            await asyncio.sleep(0.002)
        await asyncio.sleep(dice.random() / 50)  # anywhere within a transaction
        victim = dice.choice(("api 0", "api 1", "postgres"))
        kills[victim] += 1
        print(f"{time.monotonic() - begin:.1f} s: {record.answered} answered, kill {victim}")
        if victim == "postgres":
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        else:
            api = apis[int(victim[-1])]
            await asyncio.to_thread(api.kill)
            api.start()
    return kills


async def judge(database: Database, record: Record) -> None:
    async with database.transaction() as connection:
        found = await audit.find_violations(connection, time.time_ns() // 1000)
    assert not any(found.values()), found
    async with database.transaction() as connection:
        states = {row.id: row.state for row in await connection.execute(text("SELECT id, state FROM transfers"))}
        ledger = (await connection.execute(text("SELECT link_id, begin_us, end_us, delta_bps FROM ledger"))).all()
    # Every key has had its answer by now: a transfer that no answer names was made twice, or out of nothing.
    assert record.answered == REQUESTS
    assert set(states) == set(record.booked.values())
    assert len(states) == len(record.booked)
    assert {transfer for transfer, state in states.items() if state == "CANCELED"} == record.cancelled
    for link, _, _ in LINKS:
        changes: Counter[int] = Counter()
        for row in ledger:
            if row.link_id == link:
                changes[row.begin_us] += row.delta_bps
                changes[row.end_us] -= row.delta_bps
        level = 0
        for instant in sorted(changes):
            level += changes[instant]
            assert 0 <= level <= 10**9, (link, instant, level)
