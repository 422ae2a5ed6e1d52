# SPDX-License-Identifier: Apache-2.0
"""Transfers that agents carry: booked, reported on, and a row many times over."""

from typing import Any

from sqlalchemy import text

from broker.store.tables import transfers
from tests.service import Service, at, checked


async def managed(service: Service, volume_bytes: int = 125_000_000 * 100, **more: Any) -> dict[str, Any]:
    body = {"source": "h1", "destination": "h2", "volume_bytes": volume_bytes, "mode": "managed", "payload": {"path": "x"}}
    return checked(await service.client.post("/v1/transfers", json=body | more), 201)


async def reported(agent: Any, host: str, transfer: str, *kinds: tuple[str, int, float], first: int = 1) -> None:
    """(kind, bytes, at) each."""
    reports = [
        {"transfer_id": transfer, "sequence": first + n, "at": at(when), "kind": kind, "bytes": number, "rate_bps": 10**9}
        for n, (kind, number, when) in enumerate(kinds)
    ]
    checked(await agent.post(f"/v1/agents/{host}/reports", json={"reports": reports}))


async def multiplied(service: Service, transfer_id: str, times: int) -> None:
    """That row so many times over, as transfers that agents are moving."""
    names = [column.name for column in transfers.columns if column.name not in ("id", "state", "mode")]
    columns = ", ".join(f'"{name}"' for name in names)
    copies = f"SELECT 'tr_' || n, 'ACTIVE', 'managed', {columns} FROM transfers, generate_series(1, {times}) AS n WHERE id = '{transfer_id}'"
    async with service.database.transaction() as connection:
        await connection.execute(text(f"INSERT INTO transfers (id, state, mode, {columns}) {copies}"))
        await connection.execute(text("ANALYZE transfers"))
