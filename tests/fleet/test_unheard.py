# SPDX-License-Identifier: Apache-2.0
"""Agents that cannot be heard: what was handed to them keeps its booking, what they never fetched is withdrawn, late reports correct."""

import asyncio
from typing import Any

import pytest

from broker.core.units import US_PER_S, format_time
from broker.desk.ground.policy import Policy
from broker.desk.service.desk import Desk
from broker.desk.service.timers import run_timers
from broker.fleet import assignments as handing
from broker.store.transfers import Patience
from tests.api.problems import problem
from tests.fleet.world import VOLUME, Fleet
from tests.service import Service, checked

PATIENCE = Patience(grace_us=60 * US_PER_S, silence_us=90 * US_PER_S, lost_us=600 * US_PER_S)


async def due(service: Service) -> int:
    return await run_timers(service.database, Desk(service.database, service.clock, Policy()), service.clock(), PATIENCE)


async def all_due(service: Service) -> None:
    while await due(service):
        pass


async def booked_on(service: Service, link: str = "L1") -> int:
    """Bit/s booked on the link now."""
    now = service.clock()
    answer = await service.client.get(
        f"/v1/links/{link}/calendar", params={"from": format_time(now), "to": format_time(now + US_PER_S)}
    )
    return int(checked(answer)["steps"][0]["booked_bps"])


async def heartbeat(f: Fleet, host: str, **said: Any) -> Any:
    return checked(await f.agents[host].post(f"/v1/agents/{host}/reports", json=said))


async def handed_out(f: Fleet, **more: Any) -> Any:
    booked = await f.book(**more)
    for host in ("h1", "h2"):
        await f.document(host)
    return booked


async def history(service: Service, transfer: dict[str, Any]) -> list[str]:
    return [event["action"] for event in checked(await service.client.get(f"/v1/transfers/{transfer['id']}/events"))]


async def test_what_was_handed_out_keeps_its_booking_while_nobody_is_heard(fleet: Fleet, service: Service) -> None:
    """The partition: both agents lose the broker before they could say that they began. (It was EXPIRED after 60 s, for ever.)"""
    booked = await handed_out(fleet, volume_bytes=12_500_000_000)  # 100 s
    service.clock.advance(30)
    assert await due(service) == 0
    service.clock.advance(40)
    assert await due(service) == 1
    silent = await fleet.transfer(booked)
    assert (silent["state"], silent["waiting_reason"]["code"]) == ("RESERVED", "unheard")
    assert silent["unheard_since"].startswith("2026-01-01T00:01:10")
    assert await booked_on(service) == 10**9, "its sender may be sending"
    assert await due(service) == 0, "said once"
    # They are back: everything that happened is told late, and taken.
    service.clock.advance(60)
    begun = "2026-01-01T00:00:02Z"
    assert await fleet.report("h1", booked, "started", 1, at=begun) == "accepted"
    again = await fleet.transfer(booked)
    assert (again["state"], again["unheard_since"], again["waiting_reason"]) == ("ACTIVE", None, None)
    assert again["actual_start"] == "2026-01-01T00:00:02Z"
    assert await fleet.report("h2", booked, "finished", 1, bytes=12_500_000_000) == "accepted"
    assert (await fleet.transfer(booked))["state"] == "FINISHED"
    assert await history(service, booked) == [
        "transfer.admitted",
        "transfer.unheard",
        "transfer.heard",
        "transfer.started",
        "transfer.finished",
    ]


async def test_a_file_that_arrived_during_the_partition_is_finished(fleet: Fleet, service: Service) -> None:
    """Only the receiver is back. Its word that the file is whole ends the transfer, whatever the sender has not said yet."""
    booked = await handed_out(fleet)
    service.clock.advance(85)
    await all_due(service)
    assert (await fleet.transfer(booked))["waiting_reason"]["code"] == "unheard"
    assert await fleet.report("h2", booked, "finished", 1, bytes=VOLUME) == "accepted"
    done = await fleet.transfer(booked)
    assert (done["state"], done["bytes_done"], done["unheard_since"]) == ("FINISHED", VOLUME, None)
    assert done["waiting_reason"] is None


async def test_an_end_that_was_assumed_is_corrected(fleet: Fleet, service: Service) -> None:
    late, failed, going_on, gone = [await handed_out(fleet, volume_bytes=VOLUME // 10) for _ in range(4)]
    service.clock.advance(70)
    await all_due(service)
    service.clock.advance(601)
    await all_due(service)
    for transfer in (late, failed, going_on, gone):
        assumed = await fleet.transfer(transfer)
        assert (assumed["state"], assumed["assumed"], assumed["waiting_reason"]["code"]) == ("FAILED", True, "agents_lost")
        assert "last heard 2026-01-01T00:00:00" in assumed["waiting_reason"]["detail"]
    assert await booked_on(service) == 0
    # The agents still find them in what they shall do: what is on their disks is not thrown away because nobody was heard.
    assert {a["transfer_id"] for a in (await fleet.document("h1"))["assignments"]} == {
        t["id"] for t in (late, failed, going_on, gone)
    }
    assert await fleet.report("h2", late, "finished", 1, bytes=VOLUME // 10) == "accepted"
    assert await fleet.report("h1", failed, "failed", 1, code="file_missing", detail="x.h5 is gone") == "accepted"
    assert await fleet.report("h1", going_on, "progress", 1, bytes=5) == "accepted"
    assert (await fleet.transfer(late))["state"] == "FINISHED"
    told = await fleet.transfer(failed)
    assert (told["state"], told["assumed"], told["waiting_reason"]["code"]) == ("FAILED", False, "file_missing")
    alive = await fleet.transfer(going_on)
    assert (alive["state"], alive["assumed"], alive["bytes_done"], alive["actual_finish"]) == ("ACTIVE", False, 5, None)
    # Who does not want to wait for a word of it any more can still say so.
    checked(await service.client.post(f"/v1/transfers/{gone['id']}/cancel"))
    assert {a["transfer_id"] for a in (await fleet.document("h1"))["assignments"]} == {going_on["id"]}


@pytest.mark.parametrize(("fetched", "missing"), [((), ("h1", "h2")), (("h1",), ("h2",)), (("h2",), ("h1",))])
async def test_what_an_agent_never_fetched_is_withdrawn_with_the_true_reason(
    fleet: Fleet, service: Service, fetched: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    booked = await fleet.book()
    for host in fetched:
        await fleet.document(host)
    service.clock.advance(70)
    await all_due(service)
    gone = await fleet.transfer(booked)
    assert (gone["state"], gone["waiting_reason"]["code"]) == ("EXPIRED", "never_fetched")
    for host in missing:
        assert f"the agent on {host} (last heard 2026-01-01T00:00:00" in gone["waiting_reason"]["detail"]
    for host in fetched:
        assert f"agent on {host}" not in gone["waiting_reason"]["detail"]
    outlook = checked(await service.client.get(f"/v1/transfers/{booked['id']}", params={"outlook": True}))["outlook"]
    assert (outlook["promise"], outlook["detail"]) == ("broken", gone["waiting_reason"]["detail"])
    assert (await fleet.document("h1"))["assignments"] == []


async def test_who_fetches_while_it_is_withdrawn_is_handed_nothing(fleet: Fleet, service: Service) -> None:
    """Read first, withdrawn meanwhile: the answer leaves it out."""
    booked, other = await fleet.book(), await fleet.book(not_before="2026-01-01T01:00:00Z")
    async with service.database.transaction() as connection:
        read = await handing.load_assignments(connection, "h1", b"x" * 32, 0, {}, service.clock())
    assert read.untold == {booked["id"], other["id"]}
    service.clock.advance(70)
    await all_due(service)
    assert (await fleet.transfer(booked))["state"] == "EXPIRED"
    document = await handing.hand_out(service.database, "h1", read)
    assert [a["transfer_id"] for a in document["assignments"]] == [other["id"]]


async def test_fetching_and_withdrawing_at_once(fleet: Fleet, service: Service) -> None:
    """Of a hundred, each is either handed out and kept or withdrawn and not handed out, whoever was first."""
    booked = [await fleet.book(volume_bytes=1000) for _ in range(100)]
    await fleet.document("h2")
    service.clock.advance(70)
    documents, *_ = await asyncio.gather(fleet.document("h1"), due(service), due(service))
    handed = {a["transfer_id"] for a in documents["assignments"]}
    for transfer in booked:
        state = (await fleet.transfer(transfer))["state"]
        assert (state == "RESERVED") == (transfer["id"] in handed), (state, transfer["id"] in handed)


async def test_a_running_transfer_is_unheard_while_its_sender_is_silent(fleet: Fleet, service: Service) -> None:
    booked = await handed_out(fleet, volume_bytes=50_000_000_000)  # 400 s
    service.clock.advance(4)
    await fleet.report("h1", booked, "started", 1)
    service.clock.advance(80)
    assert await due(service) == 0
    service.clock.advance(11)
    await heartbeat(fleet, "h2")
    assert await due(service) == 1
    assert (await fleet.transfer(booked))["waiting_reason"]["code"] == "unheard"
    # The receiver's progress shows that it goes on, but not by which plan.
    assert await fleet.report("h2", booked, "progress", 1, bytes=9) == "accepted"
    silent = await fleet.transfer(booked)
    assert (silent["bytes_done"], silent["waiting_reason"]["code"]) == (9, "unheard")
    for action in ("pause", "resume"):
        answer = await service.client.post(f"/v1/transfers/{booked['id']}/{action}")
        if action == "pause":
            refused = problem(answer, 409, "unheard")
            assert refused["host"] == "h1" and "goes on by the plan that it has" in refused["detail"]
    etag = {"If-Match": "*"}
    problem(await service.client.patch(f"/v1/transfers/{booked['id']}", json={"rate_max_bps": 10**8}, headers=etag), 409, "unheard")
    checked(await service.client.patch(f"/v1/transfers/{booked['id']}", json={"label": "x"}, headers=etag))
    await heartbeat(fleet, "h1")
    assert await due(service) == 1
    assert (await fleet.transfer(booked))["waiting_reason"] is None
    checked(await service.client.patch(f"/v1/transfers/{booked['id']}", json={"rate_max_bps": 10**8}, headers=etag))


async def test_a_live_agent_that_says_nothing_of_a_transfer_is_no_news_of_it(fleet: Fleet, service: Service) -> None:
    """Long after its booking, with an agent that goes on calling: unheard is said once, and ends as assumed, not in turns with heard."""
    booked = await handed_out(fleet)  # ten seconds
    service.clock.advance(4)
    await fleet.report("h1", booked, "started", 1)
    service.clock.advance(110)
    await heartbeat(fleet, "h1")
    assert await due(service) == 1
    for _ in range(11):
        service.clock.advance(60)
        await heartbeat(fleet, "h1")
        await due(service)
    assert (await fleet.transfer(booked))["assumed"]
    told = await history(service, booked)
    assert told == ["transfer.admitted", "transfer.started", "transfer.unheard", "transfer.failed"]


@pytest.mark.parametrize("told", [True, False])
async def test_a_cancel_that_its_sender_cannot_hear_keeps_the_booking(fleet: Fleet, service: Service, told: bool) -> None:
    """Until the sender knows, or the booking is over."""
    booked = await handed_out(fleet, volume_bytes=50_000_000_000)
    service.clock.advance(4)
    await fleet.report("h1", booked, "started", 1)
    service.clock.advance(100)
    await all_due(service)
    gone = checked(await service.client.post(f"/v1/transfers/{booked['id']}/cancel"))
    assert (gone["state"], gone["unheard_since"] is not None) == ("CANCELED", True)
    assert await booked_on(service) == 10**9 and await due(service) == 0
    if told:
        document = await fleet.document("h1")
        assert document["assignments"] == []
        assert await due(service) == 0, "it was told, and has not said that it acts by it"
        await heartbeat(fleet, "h1", revision=document["revision"])
    else:
        service.clock.advance(400)
    await all_due(service)
    assert await booked_on(service) == 0
    assert (await fleet.transfer(booked))["unheard_since"] is None
    assert await due(service) == 0


async def test_nobody_is_moved_who_cannot_hear_of_it(fleet: Fleet, service: Service) -> None:
    """A successor whose agent is silent keeps its place when its predecessor ends early: its sender begins at the time that it knows."""
    first = await handed_out(fleet, volume_bytes=50_000_000_000)
    second = await handed_out(fleet, after=first["id"])
    service.clock.advance(4)
    await fleet.report("h1", first, "started", 1)
    service.clock.advance(95)
    await all_due(service)
    before = await fleet.transfer(second)
    assert before["waiting_reason"]["code"] == "unheard"
    assert await fleet.report("h2", first, "finished", 1, bytes=50_000_000_000) == "accepted"
    assert (await fleet.transfer(second))["plan"] == before["plan"]


async def test_a_wrapped_booking_that_nobody_came_to_use_goes_back(fleet: Fleet, service: Service) -> None:
    """Its agent has told all that it had to tell, and no command was run: that is known, not assumed."""
    booked = await fleet.book(mode="wrapped", payload=None)
    await fleet.document("h1")
    service.clock.advance(70)
    await heartbeat(fleet, "h1", complete=False)
    await all_due(service)
    assert (await fleet.transfer(booked))["waiting_reason"]["code"] == "unheard", "what it still has to tell may be that it began"
    await heartbeat(fleet, "h1", complete=True)
    await all_due(service)
    gone = await fleet.transfer(booked)
    assert (gone["state"], gone["waiting_reason"]["code"]) == ("EXPIRED", "unused")
    assert gone["waiting_reason"]["detail"] == "no command was run for it on h1"


# -- hosts that are down -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("host", "field"), [("h1", "source"), ("h2", "destination")])
@pytest.mark.parametrize("said_goodbye", [True, False])
async def test_nothing_is_promised_on_a_host_that_is_down(
    fleet: Fleet, service: Service, host: str, field: str, said_goodbye: bool
) -> None:
    if said_goodbye:
        await heartbeat(fleet, host, goodbye=True)
    else:
        service.clock.advance(91)
        await heartbeat(fleet, "h2" if host == "h1" else "h1")
    shown = checked(await service.client.get(f"/v1/hosts/{host}"))
    assert (shown["state"], shown["up"]) == ("stopped" if said_goodbye else "down", False)
    ask = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "payload": {"path": "x.h5"}}
    refused = problem(await service.client.post("/v1/transfers", json=ask), 409, "host-down", field)
    assert refused["host"] == host and "hosts_up_from" in refused["detail"]
    assert ("stopped at" if said_goodbye else "last heard") in refused["detail"]
    problem(await service.client.post("/v1/quotes", json=ask), 409, "host-down", field)
    items = checked(await service.client.post("/v1/transfers/batch", json=[ask, ask | {"mode": "reserve", "payload": None}]))[
        "items"
    ]
    assert [item["status"] for item in items] == [409, 201], "who needs no agent needs none that is up"
    later = service.clock.now_us + 3600 * US_PER_S
    planned = checked(await service.client.post("/v1/transfers", json=ask | {"hosts_up_from": format_time(later)}), 201)
    assert planned["plan"]["start"] == format_time(later)
    await heartbeat(fleet, host)  # it is back
    soon = checked(await service.client.post("/v1/transfers", json=ask | {"hosts_up_from": format_time(later)}), 201)
    assert soon["plan"]["start"] < format_time(later), "it is up: nobody needs to wait"


async def test_a_wrapped_transfer_needs_the_agent_of_its_source_alone(fleet: Fleet, service: Service) -> None:
    await heartbeat(fleet, "h2", goodbye=True)
    await fleet.book(mode="wrapped", payload=None)
    await heartbeat(fleet, "h1", goodbye=True)
    ask = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "mode": "wrapped"}
    problem(await service.client.post("/v1/transfers", json=ask), 409, "host-down", "source")


async def test_the_reports_of_many_transfers_are_few_transactions(
    fleet: Fleet, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand small files end at once: their reports are handed to the desk together."""
    booked = [await fleet.book(volume_bytes=1000) for _ in range(50)]
    await fleet.document("h1")
    batches: list[int] = []
    transact = Desk._transact

    async def counted(desk: Desk, batch: list[Any]) -> None:
        batches.append(len(batch))
        await transact(desk, batch)

    monkeypatch.setattr(Desk, "_transact", counted)
    at = format_time(service.clock.now_us)
    kinds = ((1, "started"), (2, "progress"))
    reports = [{"transfer_id": t["id"], "sequence": n, "at": at, "kind": kind} for t in booked for n, kind in kinds]
    assert len((await fleet.send("h1", *reports))["accepted"]) == 100
    assert sum(batches) == 50 and len(batches) <= 3, batches


async def test_reports_and_the_desk_lock_in_one_order(fleet: Fleet, service: Service) -> None:
    """Transfers before hosts: progress that is noted while the same transfers change must not end in a deadlock, which is a 503."""
    booked = [await fleet.book(volume_bytes=1000) for _ in range(8)]
    await fleet.document("h1")
    at = format_time(service.clock.now_us)

    async def change(transfer: dict[str, Any], label: str) -> None:
        checked(await service.client.patch(f"/v1/transfers/{transfer['id']}", json={"label": label}))

    for sequence in range(1, 16):
        reports = [{"transfer_id": t["id"], "sequence": sequence, "at": at, "kind": "progress", "bytes": sequence} for t in booked]
        await asyncio.gather(
            heartbeat(fleet, "h1", reports=reports, complete=True), *(change(transfer, f"{sequence}") for transfer in booked)
        )
