# SPDX-License-Identifier: Apache-2.0
"""The audit must be able to fail: every check sees the damage that it is there for, done by SQL behind the broker's back."""

from typing import Any

import pytest
from sqlalchemy import text

from broker.store import audit
from tests.conftest import Service, checked

ASK = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}
DAY = {"not_before": "2026-01-02T00:00:00Z"}

# check -> (damage, in several forms); `{id}` is a live transfer of a second, tomorrow
DAMAGE = [
    (
        "over_capacity",
        "INSERT INTO ledger SELECT link_id, version + 100, 'tr_x', begin_us, end_us, 1 FROM ledger WHERE transfer_id = '{id}'",
    ),
    ("over_capacity", "INSERT INTO ledger VALUES ('L1', 100, 'tr_x', 5000000000000000, 6000000000000000, -1)"),
    ("over_capacity", "UPDATE links SET capacity_bps = capacity_bps - 1"),
    ("over_capacity", "UPDATE links SET mtu_bytes = 9000"),
    ("over_capacity", "INSERT INTO link_steps VALUES ('L1', 0, 999999999)"),
    (
        "over_capacity",
        "INSERT INTO link_windows SELECT 'w', 'L1', end_us - 1, end_us, 999999999, 'outage' FROM ledger WHERE transfer_id = '{id}'",
    ),
    ("volume_not_carried", "UPDATE transfers SET booked_bytes = booked_bytes + 1 WHERE id = '{id}'"),
    ("volume_not_carried", "UPDATE transfers SET segments = '[]' WHERE id = '{id}'"),
    ("volume_not_carried", "UPDATE transfers SET segments = jsonb_set(segments, '{{0,2}}', '999999999') WHERE id = '{id}'"),
    ("outside_the_times_asked", "UPDATE transfers SET not_before_us = start_us + 1 WHERE id = '{id}'"),
    ("outside_the_times_asked", "UPDATE transfers SET deadline_us = finish_us - 1 WHERE id = '{id}'"),
    ("outside_the_times_asked", "UPDATE transfers SET rate_max_bps = 999999999 WHERE id = '{id}'"),
    ("ledger_differs_from_plan", "DELETE FROM ledger WHERE transfer_id = '{id}'"),
    ("ledger_differs_from_plan", "UPDATE ledger SET delta_bps = delta_bps - 1 WHERE transfer_id = '{id}'"),
    ("ledger_differs_from_plan", "UPDATE ledger SET end_us = end_us - 1 WHERE transfer_id = '{id}'"),
    ("ledger_differs_from_plan", "UPDATE transfers SET segments = jsonb_set(segments, '{{0,3}}', '[\"L2\"]') WHERE id = '{id}'"),
    ("ended_but_booked", "UPDATE transfers SET state = 'CANCELED', segments = '[]' WHERE id = '{id}'"),
    ("ended_but_booked", "UPDATE transfers SET state = 'FAILED' WHERE id = '{id}'"),
    ("head_behind_ledger", "UPDATE links SET version = version - 1"),
    ("head_behind_ledger", "INSERT INTO ledger SELECT 'L1', version + 1, 'tr_x', 1, 2, 1 FROM links WHERE id = 'L1'"),
    (
        "key_used_twice",
        "INSERT INTO idempotency_keys SELECT owner, key || '2', body_hash, answer, created_us FROM idempotency_keys",
    ),
]


async def world(service: Service) -> dict[str, Any]:
    """Something of everything, and the clean bill for it."""
    await service.link()
    ended = await service.book()
    checked(await service.client.post(f"/v1/transfers/{ended['id']}/cancel"))
    await service.book(hold=True, volume_bytes=10**10, rate_max_bps=10**8)
    booked = checked(await service.client.post("/v1/transfers", json=ASK | DAY, headers={"Idempotency-Key": "k"}), 201)
    await service.audit()
    return booked  # type: ignore[no-any-return]


@pytest.mark.parametrize(("check", "damage"), DAMAGE)
async def test_the_audit_sees_it(service: Service, check: str, damage: str) -> None:
    booked = await world(service)
    async with service.database.transaction() as connection:
        await connection.execute(text(damage.format(**booked)))
    service.clock.advance(2)
    report = checked(await service.client.get("/v1/audit"))
    assert not report["clean"] and report["violations"][check], report["violations"]


def test_every_check_is_tried() -> None:
    assert {check for check, _ in DAMAGE} == set(audit.CHECKS)


async def test_what_was_found_shows_in_the_metrics(service: Service) -> None:
    assert "bwb_audit_timestamp_seconds 0.0" in (await service.client.get("/metrics")).text
    await world(service)
    for damage, number in (("SELECT 1", "0.0"), ("UPDATE links SET version = version - 1", "1.0")):
        async with service.database.transaction() as connection:
            await connection.execute(text(damage))
        async with service.database.transaction() as connection:
            found = await audit.violations(connection, service.clock())
        async with service.database.transaction() as connection:
            await audit.remember(connection, service.clock(), 1, found)
        shown = (await service.client.get("/metrics")).text
        assert f'bwb_audit_violations{{check="head_behind_ledger"}} {number}' in shown
        assert 'bwb_audit_violations{check="over_capacity"} 0.0' in shown
        assert "bwb_audit_timestamp_seconds 1.767" in shown


async def test_the_rest_of_a_slot_is_no_fault(service: Service) -> None:
    """What ended within a slot is booked until the slot ends."""
    await service.link(slot_us=60_000_000)
    booked = await service.book(volume_bytes=125_000_000 * 600)
    service.clock.advance(90)
    checked(await service.client.post(f"/v1/transfers/{booked['id']}/cancel"))
    service.clock.advance(5)
    await service.audit()
