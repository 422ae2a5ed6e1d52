# SPDX-License-Identifier: Apache-2.0
"""Clients of /v1/events after a dump was restored into a new cluster, whose transactions are numbered from far below."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from broker.embedded.postgres import binaries
from broker.store.events import Position
from broker.store.session import Database
from tests.api.streams import newest, noted, streamed, take
from tests.postgres import Server, temporary_server
from tests.service import Clock, Service, running

# Each of these gets a number.
_TRANSACTIONS = "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"


@pytest.fixture(scope="module")
def other_cluster() -> Iterator[Server]:
    with temporary_server() as server:
        yield server


def restore(dump: Path, into: Server) -> str:
    with psycopg.connect(into.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    url = into.url("restored")
    subprocess.run([binaries() / "pg_restore", f"--dbname={url}", "--no-owner", "--exit-on-error", dump], check=True, timeout=60)
    return url


async def test_positions_survive_a_restore(
    service: Service, database_url: str, other_cluster: Server, clock: Clock, tmp_path: Path
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(_TRANSACTIONS)
    await noted(service, "seen")
    seen = await newest(service)
    await noted(service, "missed")
    dump = tmp_path / "broker.dump"
    subprocess.run([binaries() / "pg_dump", "--format=custom", f"--file={dump}", database_url], check=True, timeout=60)
    await noted(service, "lost")
    future = await newest(service)

    url = restore(dump, other_cluster)
    database = Database(url)
    async with running(url, clock) as app, asyncio.timeout(30):
        restored = Service(app, service.client, database, clock)
        start = await newest(restored)
        assert seen < start < future, "what was restored is in order, and settled"
        async with streamed(restored, seen) as stream, streamed(restored) as live:
            assert [await anext(live) is not None] and [data["subject"] for _, data in await take(stream, 1)] == ["missed"]
            await noted(restored, "new")
            for one in (stream, live):
                ((told, data),) = await take(one, 1)
                assert data["subject"] == "new" and Position.parse(told) > future
        async with streamed(restored, start) as stream:
            assert [data["subject"] for _, data in await take(stream, 1)] == ["new"]
        for away in (future, Position(99, 1, 1)):
            answer = await restored_client(restored, away)
            assert answer.startswith("id: ") and "\nevent: reset\n" in answer and '"action":"stream.reset"' in answer
        for fine in (seen, start, Position.parse("0-0")):
            assert "reset" not in await restored_client(restored, fine)
    await database.close()


async def restored_client(service: Service, last: Position) -> str:
    """What a client that comes back hears first."""
    heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200, message
        elif message.get("body") and not heard.done():
            heard.set_result(bytes(message["body"]).decode())  # type: ignore[call-overload]

    headers = [(b"authorization", service.client.headers["authorization"].encode()), (b"last-event-id", str(last).encode())]
    scope = {"type": "http", "method": "GET", "path": "/v1/events", "raw_path": b"/v1/events", "scheme": "http", "query_string": b"",
             "headers": [*headers, (b"host", b"broker")], "server": ("broker", 80), "client": ("127.0.0.1", 1), "root_path": "",
             "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"}}  # fmt: skip
    call = asyncio.create_task(service.app(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]
    try:
        return await asyncio.wait_for(heard, 10)
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_an_epoch_begins_once(service: Service, database_url: str, clock: Clock) -> None:
    """However many processes start, and however often."""
    await noted(service, "x")
    before = await newest(service)
    async with running(database_url, clock), running(database_url, clock):
        await noted(service, "y")
    after = await newest(service)
    assert before.epoch == after.epoch and before < after
