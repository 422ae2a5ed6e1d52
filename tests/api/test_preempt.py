# SPDX-License-Identifier: Apache-2.0
"""Preemption over REST: who gives way, who does not, and what they are told."""

from typing import Any

from broker.core.units import parse_time
from broker.fleet.tokens import Scope
from broker.settings import Settings
from tests.api.problems import problem
from tests.fleet.world import enrolled
from tests.service import START_US, Clock, Service, at, checked, client_of, running

SECOND = 125_000_000  # bytes that 1 Gbit/s carries in a second
WINDOW = {"not_before": at(10), "deadline": at(14)}


async def ask(service: Service, status: int = 201, **more: Any) -> Any:
    body = {"source": "A", "destination": "B", "volume_bytes": 4 * SECOND, **WINDOW, **more}
    answer = await service.client.post("/v1/transfers", json=body)
    return checked(answer, 201) if status == 201 else problem(answer, status)


async def now(service: Service, transfer: dict[str, Any]) -> Any:
    return checked(await service.client.get(f"/v1/transfers/{transfer['id']}"))


async def test_only_best_effort_of_lower_priority_gives_way(service: Service) -> None:
    await service.link()
    guaranteed = await ask(service)
    said = await ask(service, 409, priority=5, preempt=True)
    assert said["type"].endswith("/infeasible") and said["counter_offers"]
    await service.client.post(f"/v1/transfers/{guaranteed['id']}/cancel")
    equal = await ask(service, best_effort=True, priority=5)
    assert (await ask(service, 409, priority=5, preempt=True))["type"].endswith("/infeasible")
    assert (await ask(service, 409, priority=6))["type"].endswith("/infeasible")  # it did not ask to preempt
    admitted = await ask(service, priority=6, preempt=True, label="urgent")
    assert admitted["plan"]["start"] == at(10)
    displaced = await now(service, equal)
    assert displaced["state"] == "RESERVED" and displaced["deadline"] is None
    reason = displaced["waiting_reason"]
    assert reason["code"] == "preempted" and reason["until"] == displaced["plan"]["finish"]
    for told in (admitted["id"], "urgent", f"the deadline {at(14)} cannot be kept", displaced["plan"]["finish"]):
        assert told in reason["detail"]
    history = checked(await service.client.get(f"/v1/transfers/{equal['id']}/events"))
    assert history[-1]["action"] == "transfer.preempted" and history[-1]["after"]["reason"]["code"] == "preempted"
    history = checked(await service.client.get(f"/v1/transfers/{admitted['id']}/events"))
    assert history[-1]["after"] == {"displaced": [equal["id"]]}
    await service.audit()


async def test_no_more_are_displaced_than_needed_the_least_important_and_youngest_first(service: Service) -> None:
    await service.link()
    low: dict[str, Any] = {"best_effort": True, "volume_bytes": SECOND, "rate_max_bps": 250_000_000, "deadline": None}
    bookings = [await ask(service, priority=priority, **low) for priority in (0, 2, 0, 1)]
    admitted = await ask(service, volume_bytes=SECOND, rate_max_bps=250_000_000, priority=9, preempt=True)
    assert (admitted["plan"]["start"], admitted["plan"]["finish"]) == (at(10), at(14))
    moved = [(await now(service, booking))["plan"] != booking["plan"] for booking in bookings]
    assert moved == [False, False, True, False]  # of the two least important ones, the younger
    await service.audit()
    await ask(service, volume_bytes=2 * SECOND, rate_max_bps=500_000_000, priority=9, preempt=True)
    moved = [(await now(service, booking))["plan"] != booking["plan"] for booking in bookings]
    assert moved == [True, False, True, True]
    await service.audit()


async def test_one_large_victim_spares_the_small_ones(service: Service) -> None:
    """Whoever was taken on the way and is not needed stays."""
    await service.link()
    small = [await ask(service, best_effort=True, priority=0, volume_bytes=SECOND // 4, rate_max_bps=62_500_000) for _ in range(3)]
    large = await ask(service, best_effort=True, priority=1, volume_bytes=3 * SECOND, rate_max_bps=750_000_000)
    await ask(service, volume_bytes=3 * SECOND, rate_max_bps=750_000_000, priority=9, preempt=True)
    assert [(await now(service, booking))["plan"] == booking["plan"] for booking in small] == [True] * 3
    assert (await now(service, large))["waiting_reason"]["code"] == "preempted"
    await service.audit()


async def test_a_victim_that_fits_nowhere_fails_with_the_reason(service: Service) -> None:
    await service.link()
    checked(
        await service.client.patch("/v1/links/L1", json={"available": [{"from": at(0), "bps": 10**9}, {"from": at(14), "bps": 0}]})
    )
    victim = await ask(service, best_effort=True)
    held: dict[str, Any] = {"best_effort": True, "hold": True, "volume_bytes": SECOND, "not_before": at(5), "deadline": at(9)}
    await ask(service, **held)
    admitted = await ask(service, priority=1, preempt=True)
    gone = await now(service, victim)
    assert gone["state"] == "FAILED" and gone["waiting_reason"]["code"] == "preempted"
    assert admitted["id"] in gone["waiting_reason"]["detail"]
    await service.audit()


async def test_what_has_been_sent_is_kept(service: Service, clock: Clock) -> None:
    await service.link()
    victim = await ask(service, best_effort=True, deadline=None)
    clock.now_us = parse_time(at(12))
    await ask(service, priority=1, preempt=True, volume_bytes=SECOND, not_before=None, deadline=at(13.1))
    moved = await now(service, victim)
    carried = sum(s["rate_bps"] * (parse_time(s["end"]) - parse_time(s["begin"])) for s in moved["plan"]["segments"]) // 8_000_000
    assert 0 <= carried - 4 * SECOND < 1000
    await service.audit()


async def test_agents_of_a_victim_hear_of_it_in_time(service: Service, clock: Clock) -> None:
    async with enrolled(service) as pair:
        victim = await pair.book(best_effort=True)
        revision = (await pair.document("h1"))["revision"]
        await ask(service, source="h1", destination="h2", priority=1, preempt=True, not_before=None, deadline=at(8), mode="reserve")
        (assigned,) = (await pair.document("h1"))["assignments"]
        assert (await pair.document("h1"))["revision"] > revision
        assert assigned["plan_revision"] == 2
        assert parse_time(assigned["segments"][0]["begin"]) - START_US >= 1_500_000
        assert (await pair.transfer(victim))["waiting_reason"]["code"] == "preempted"


async def test_preemption_needs_operate_unless_the_operator_says_otherwise(
    service: Service, database_url: str, clock: Clock
) -> None:
    await service.link()
    user = service.as_token(await service.token(Scope.SUBMIT))
    body = {"source": "A", "destination": "B", "volume_bytes": SECOND, "preempt": True}
    for path, content in (("/v1/transfers", body), ("/v1/transfers/batch", [body])):
        assert problem(await user.post(path, json=content), 403, "forbidden")["scope"] == "operate"
    assert Settings().submit_may_preempt is False
    checked(await service.client.post("/v1/transfers", json=body), 201)
    async with running(database_url, clock, submit_may_preempt=True) as app:
        token = user.headers["authorization"].split()[1]
        checked(await client_of(app, token).post("/v1/transfers", json=body), 201)


async def test_in_a_batch_and_with_a_key(service: Service) -> None:
    await service.link()
    victims = [await ask(service, best_effort=True, volume_bytes=2 * SECOND) for _ in range(2)]
    body = {"source": "A", "destination": "B", "volume_bytes": 2 * SECOND, **WINDOW, "priority": 3}
    items = [body, {**body, "preempt": True}, {**body, "preempt": True}, {**body, "preempt": True}]
    answers = [
        checked(await service.client.post("/v1/transfers/batch", json=items, headers={"Idempotency-Key": "k"}))["items"]
        for _ in range(2)
    ]
    assert [item["status"] for item in answers[0]] == [409, 201, 201, 409]
    assert answers[0] == answers[1]
    assert [(await now(service, victim))["waiting_reason"]["code"] for victim in victims] == ["preempted"] * 2
    await service.audit()
