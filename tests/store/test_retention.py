# SPDX-License-Identifier: Apache-2.0
"""Forgetting takes a booking whole or not at all."""

from typing import Any

from sqlalchemy import text

from broker.store import retention
from tests.service import Service, checked


async def ledger(service: Service) -> list[Any]:
    async with service.database.transaction() as connection:
        return list((await connection.execute(text("SELECT * FROM ledger ORDER BY version"))).all())


async def test_both_signs_of_a_booking_are_forgotten_together(service: Service) -> None:
    """A booking that was planned anew has rows that end at different times; half of it would look like over-booking."""
    await service.link()
    booked = await service.book(volume_bytes=125_000_000 * 3600)  # an hour
    service.clock.advance(600)
    checked(await service.client.patch(f"/v1/transfers/{booked['id']}", json={"volume_bytes": 125_000_000 * 1800}))
    service.clock.advance(600)
    checked(await service.client.post(f"/v1/transfers/{booked['id']}/cancel"))
    rows = await ledger(service)
    first, last = sorted({row.end_us for row in rows})
    async with service.database.transaction() as connection:
        await connection.execute(text("UPDATE transfers SET updated_us = 0"))
        await retention.prune(connection, first + 1, 0)
    assert await ledger(service) == rows
    async with service.database.transaction() as connection:
        await retention.prune(connection, last + 1, 0)
    assert await ledger(service) == []
