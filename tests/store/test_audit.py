# SPDX-License-Identifier: Apache-2.0
"""The audit must be able to fail: each check is shown the fault that it is there for, put into the tables behind the broker's back."""

import asyncio

import pytest
from sqlalchemy import text

from broker.store.audit import CHECKS
from tests.service import Service, at, checked

TRANSFER = "(SELECT id FROM transfers WHERE label = 'now')"
LATER = "(SELECT id FROM transfers WHERE label = 'later')"
FOREIGN = "INSERT INTO ledger SELECT id, version + 1, 'tr_x', {begin}, {end}, {rate} FROM links WHERE id = 'L1'"
HEAD = "; UPDATE links SET version = version + 1 WHERE id = 'L1'"
T0 = "(SELECT max(created_us) FROM transfers)"
S = 1_000_000
ELSEWHERE = """segments = segments || jsonb_build_array(jsonb_set(segments->0, '{3}', '["L9"]'))"""
CLASS_2 = "volume_bytes = NULL, duration_us = finish_us - start_us"
GAP = "segments = segments || jsonb_build_array(jsonb_build_array(finish_us + 1, finish_us + 2, 600000000, '[\"L1\"]'::jsonb))"
WAIT = f"""UPDATE transfers SET after = {TRANSFER}, signal = '{{"kind": "direct"}}'"""

# (check, what is done to the tables)
FAULTS = [
    (
        "over_capacity",
        FOREIGN.format(begin=f"{T0} + 500 * {S}", end=f"{T0} + 501 * {S}", rate=10**9) + HEAD,
    ),  # more than the payload share
    (
        "over_capacity",
        FOREIGN.format(begin=f"{T0} + 300 * {S}", end=f"{T0} + 301 * {S}", rate=950_000_000) + HEAD,
    ),  # one bit/s is enough
    ("over_capacity", FOREIGN.format(begin=f"{T0} + 405 * {S}", end=f"{T0} + 406 * {S}", rate=1) + HEAD),  # in the window
    (
        "over_capacity",
        FOREIGN.format(begin=f"{T0} + 100 * {S}", end=f"{T0} + 200 * {S}", rate=500_000_000) + HEAD,
    ),  # a sum that is too high
    ("over_capacity", FOREIGN.format(begin=f"{T0} + 500 * {S}", end=f"{T0} + 501 * {S}", rate=-1) + HEAD),  # given back twice
    ("over_capacity", "UPDATE links SET mtu_bytes = 576"),
    ("over_capacity", "UPDATE link_windows SET begin_us = 0"),
    ("over_capacity", f"INSERT INTO link_steps VALUES ('L1', {T0}, 1000)"),
    ("volume_not_carried", f"UPDATE transfers SET booked_bytes = booked_bytes + 1000 WHERE id = {TRANSFER}"),
    ("volume_not_carried", f"UPDATE transfers SET plan_from_us = plan_from_us + 1000 WHERE id = {TRANSFER}"),
    ("outside_the_times_asked", f"UPDATE transfers SET deadline_us = finish_us - 1 WHERE id = {TRANSFER}"),
    ("outside_the_times_asked", f"UPDATE transfers SET not_before_us = start_us + 1 WHERE id = {TRANSFER}"),
    ("outside_the_times_asked", f"UPDATE transfers SET rate_max_bps = 10 WHERE id = {TRANSFER}"),
    ("paths_add_up_to_more", f"UPDATE transfers SET segments = segments || segments WHERE id = {TRANSFER}"),
    ("paths_add_up_to_more", f"UPDATE transfers SET {ELSEWHERE} WHERE id = {TRANSFER}"),  # two paths at once, not asked for
    ("paths_add_up_to_more", f"UPDATE transfers SET {ELSEWHERE}, options = '{{\"split\": true}}' WHERE id = {TRANSFER}"),
    ("holding_time_broken", f"UPDATE transfers SET {CLASS_2} + 1 WHERE id = {LATER}"),
    ("holding_time_broken", f"UPDATE transfers SET {CLASS_2}, rate_min_bps = 600000001 WHERE id = {LATER}"),
    ("holding_time_broken", f"UPDATE transfers SET {CLASS_2} / 2, {GAP} WHERE id = {LATER}"),
    ("ledger_differs_from_plan", f"UPDATE ledger SET delta_bps = delta_bps - 1 WHERE transfer_id = {TRANSFER}"),
    ("ledger_differs_from_plan", f"UPDATE ledger SET end_us = end_us + 1 WHERE transfer_id = {LATER}"),
    ("ledger_differs_from_plan", f"DELETE FROM ledger WHERE transfer_id = {LATER}"),
    ("ended_but_booked", f"UPDATE transfers SET state = 'CANCELED' WHERE id = {TRANSFER}"),
    ("ended_but_booked", f"UPDATE transfers SET state = 'FAILED' WHERE id = {LATER}"),  # also when its time has not come
    ("head_behind_ledger", "UPDATE links SET version = version - 1 WHERE id = 'L1'"),
    ("successor_out_of_turn", f"{WAIT}, start_us = {T0} WHERE id = {LATER}"),
    ("successor_out_of_turn", f"{WAIT} WHERE id = {LATER}; UPDATE transfers SET finish_us = 9e15 WHERE id = {TRANSFER}"),
    ("successor_out_of_turn", f"{WAIT} WHERE id = {LATER}; UPDATE transfers SET state = 'FAILED' WHERE id = {TRANSFER}"),
    ("successor_out_of_turn", f"{WAIT} WHERE id = {LATER}; UPDATE transfers SET paused = true WHERE id = {TRANSFER}"),
    ("token_use_differs", "UPDATE token_use SET open = open + 1"),
    ("token_use_differs", "UPDATE token_use SET byte_us = byte_us - 1"),
    ("token_use_differs", "DELETE FROM token_use"),
    ("key_used_twice", "INSERT INTO idempotency_keys SELECT owner, 'another', body_hash, answer, created_us FROM idempotency_keys"),
]


@pytest.fixture
async def world(service: Service) -> Service:
    """Bookings of every kind, ten seconds after they were made."""
    await service.link(mtu_bytes=1500)
    keyed = {"source": "A", "destination": "B", "volume_bytes": 1_000_000_000, "label": "now", "rate_max_bps": 600_000_000}
    checked(await service.client.post("/v1/transfers", json=keyed, headers={"Idempotency-Key": "k"}), 201)
    await service.book(1_000_000_000, label="later", rate_max_bps=600_000_000, not_before=at(190))
    window = {"begin": at(400), "end": at(410), "bps": 0}
    checked(await service.client.post("/v1/links/L1/windows", json=window), 201)
    ended = [await service.book(not_before=at(195)), await service.book(1000)]
    for transfer in ended:
        await service.client.post(f"/v1/transfers/{transfer['id']}/cancel")
    service.clock.advance(10)
    await service.audit()
    return service


def test_every_check_is_shown_a_fault() -> None:
    assert {check for check, _ in FAULTS} == set(CHECKS)


@pytest.mark.parametrize(("check", "fault"), FAULTS)
async def test_the_audit_sees(check: str, fault: str, world: Service) -> None:
    async with world.database.transaction() as connection:
        for statement in fault.split(";"):
            await connection.execute(text(statement))
    found = checked(await world.client.get("/v1/audit"))
    assert not found["clean"]
    assert found["violations"][check], found


async def test_a_holding_time_that_is_held_is_no_fault(world: Service) -> None:
    async with world.database.transaction() as connection:
        await connection.execute(text(f"UPDATE transfers SET {CLASS_2}, rate_min_bps = 600000000 WHERE id = {LATER}"))
    await world.audit()


async def test_a_rest_of_a_slot_is_no_fault(service: Service) -> None:
    """What ended within a slot holds it to its end."""
    await service.link(slot_us=60_000_000)
    transfer = await service.book(100_000_000_000)
    service.clock.advance(130)
    checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    for _ in range(3):
        await service.audit()
        service.clock.advance(10)


async def test_an_audit_beside_admissions_sees_no_half_of_one(service: Service) -> None:
    """One snapshot for all checks: bookings that commit meanwhile must not look like differences."""
    await service.link()
    stop = asyncio.Event()

    async def book() -> None:
        while not stop.is_set():
            transfer = await service.book(1000)
            await service.client.post(f"/v1/transfers/{transfer['id']}/cancel")

    clients = [asyncio.create_task(book()) for _ in range(3)]
    for _ in range(15):
        await service.audit()
    stop.set()
    await asyncio.gather(*clients)
