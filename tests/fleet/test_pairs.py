# SPDX-License-Identifier: Apache-2.0
"""What the two senders of a pair are told: whom to wait for and since when, whom to tell; and how soon they hear of an end."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.core.units import US_PER_S, format_time, parse_time
from tests.api.problems import problem
from tests.fleet.world import Fleet
from tests.service import SECRET, START_US, Service, checked

SECOND = 125_000_000  # bytes, at the 1 Gbit/s of the link L1
FILE = {"payload": {"path": "x.h5"}}
SUM = "sha256:" + "a" * 64


@pytest.fixture
async def fleet(service: Service) -> AsyncIterator[Fleet]:
    """h1 and h3 at A, h2 and h4 at B. In the end no invariant is broken."""
    await service.link()
    ends = {"h1": "A", "h2": "B", "h3": "A", "h4": "B"}
    yield Fleet(service, {host: await service.enrol(host, node) for host, node in ends.items()})
    await service.audit()


async def pair(f: Fleet, **more: Any) -> tuple[Any, Any]:
    """Ten seconds from h1 to h2, and then ten from h3 to h4."""
    first = await f.book(volume_bytes=10 * SECOND)
    second = await f.book(volume_bytes=10 * SECOND, source="h3", destination="h4", after=first["id"], **more)
    return first, second


async def assigned(f: Fleet, host: str, transfer: Any) -> Any:
    (found,) = [a for a in (await f.document(host))["assignments"] if a["transfer_id"] == transfer["id"]]
    return found


async def revisions(f: Fleet) -> dict[str, int]:
    return {host: (await f.document(host))["revision"] for host in f.agents}


async def finish(f: Fleet, transfer: Any, host: str = "h2", sequence: int = 9) -> None:
    done = {"bytes": transfer["volume_bytes"], "checksum": SUM}
    assert await f.report(host, transfer, "finished", sequence, **done) == "accepted"


async def test_the_two_senders_and_nobody_else(fleet: Fleet) -> None:
    first, second = await pair(fleet)
    waits = (await assigned(fleet, "h3", second))["start_after"]
    (tells,) = (await assigned(fleet, "h1", first))["end_signals"]
    assert waits["predecessor"] == {
        "transfer_id": first["id"], "host": "h1", "data_address": "127.0.0.1:7411", "key": tells["successor"]["key"]
    }  # fmt: skip
    assert tells["successor"] == {
        "transfer_id": second["id"], "host": "h3", "data_address": "127.0.0.1:7411", "key": waits["predecessor"]["key"]
    }  # fmt: skip
    assert {name: waits[name] for name in ("kind", "timeout_us", "on_timeout", "released")} == {
        "kind": "direct", "timeout_us": 200_000, "on_timeout": "start", "released": False
    }  # fmt: skip
    assert {name: tells[name] for name in ("kind", "timeout_us", "on_overrun")} == {
        "kind": "direct", "timeout_us": 200_000, "on_overrun": "delay"
    }  # fmt: skip
    key = waits["predecessor"]["key"]
    assert len(bytes.fromhex(key)) == 32 and SECRET not in key
    assert key not in {(await assigned(fleet, "h3", second))["key"], (await assigned(fleet, "h1", first))["key"]}
    for host, transfer in (("h2", first), ("h4", second)):
        received = await assigned(fleet, host, transfer)
        assert (received["start_after"], received["end_signals"]) == (None, []) and key not in str(received)
    assert (await assigned(fleet, "h1", first))["start_after"] is None and (await assigned(fleet, "h3", second))[
        "end_signals"
    ] == []
    reason = (await fleet.transfer(second))["waiting_reason"]
    assert (reason["code"], reason["limited_by"]) == ("waiting_for_predecessor", first["id"])
    assert reason["until"] == second["plan"]["start"]


@pytest.mark.parametrize(("kind", "timeout_us"), [("direct", 200_000), ("broker", 5_000_000)])
async def test_what_was_asked_of_the_signal(fleet: Fleet, kind: str, timeout_us: int) -> None:
    _, second = await pair(fleet, signal={"kind": kind})
    assert (await assigned(fleet, "h3", second))["start_after"]["timeout_us"] == timeout_us
    third = await fleet.book(
        after=second["id"], signal={"kind": kind, "timeout_s": 1.5, "on_timeout": "cancel", "on_overrun": "fallback"}
    )
    waits = (await assigned(fleet, "h1", third))["start_after"]
    (tells,) = (await assigned(fleet, "h3", second))["end_signals"]
    assert (waits["kind"], waits["timeout_us"], waits["on_timeout"]) == (kind, 1_500_000, "cancel")
    assert (tells["kind"], tells["timeout_us"], tells["on_overrun"]) == (kind, 1_500_000, "fallback")


async def test_both_senders_hear_of_every_change(fleet: Fleet, service: Service) -> None:
    first = await fleet.book(volume_bytes=10 * SECOND)
    before = await revisions(fleet)
    second = await fleet.book(volume_bytes=10 * SECOND, source="h3", destination="h4", after=first["id"])
    grew = {host for host, revision in (await revisions(fleet)).items() if revision > before[host]}
    assert grew == {"h1", "h3", "h4"}, "the predecessor's sender, and the successor's two"
    before = await revisions(fleet)
    # A change of the first that leaves the second where it is: when it may begin early can differ.
    checked(await service.client.patch(f"/v1/transfers/{first['id']}", json={"rate_max_bps": 10**9}))
    assert {"h1", "h3"} <= {host for host, revision in (await revisions(fleet)).items() if revision > before[host]}
    before = await revisions(fleet)
    checked(await service.client.post(f"/v1/transfers/{second['id']}/cancel"))
    assert {"h1", "h3"} <= {host for host, revision in (await revisions(fleet)).items() if revision > before[host]}
    assert (await assigned(fleet, "h1", first))["end_signals"] == []


async def test_the_document_when_the_predecessor_has_ended(fleet: Fleet, service: Service) -> None:
    first, second = await pair(fleet)
    service.clock.advance(5)
    assert await fleet.report("h1", first, "started", 1) == "accepted"
    before = await revisions(fleet)
    await finish(fleet, first)
    assert {host for host, revision in (await revisions(fleet)).items() if revision > before[host]} >= {"h1", "h3", "h4"}
    handed = await assigned(fleet, "h3", second)
    assert handed["start_after"]["released"] is True and handed["start_after"]["early_from"] is None
    assert handed["start_after"]["predecessor"]["transfer_id"] == first["id"]
    begin = parse_time(handed["segments"][0]["begin"])
    assert 0 <= service.clock.now_us - begin < 1000 and handed["plan_revision"] == 2
    assert (await fleet.document("h1"))["assignments"] == []
    assert (await fleet.transfer(second))["waiting_reason"] is None


@pytest.mark.parametrize(
    ("code", "on_timeout", "released"),
    [("go_received", "start", True), ("timeout", "start", True), ("timeout", "cancel", False), ("overrun", "start", False)],
)
async def test_who_says_that_it_begins_waits_no_longer(
    fleet: Fleet, code: str, on_timeout: str, released: bool, service: Service
) -> None:
    first, second = await pair(fleet, signal={"kind": "direct", "on_timeout": on_timeout})
    service.clock.now_us = parse_time(second["plan"]["start"])
    assert await fleet.report("h1", first, "started", 1) == "accepted"
    assert await fleet.report("h3", second, "signal", 1, code=code, detail="said so") == "accepted"
    assert (await assigned(fleet, "h3", second))["start_after"]["released"] is released


async def test_from_when_on_a_signal_may_start_it_early(fleet: Fleet) -> None:
    first, second = await pair(fleet)
    early = (await assigned(fleet, "h3", second))["start_after"]["early_from"]
    begins = parse_time(first["plan"]["start"])
    assert parse_time(early) == pytest.approx(begins, abs=1000), "all of its way is its predecessor's, or free"
    assert (await assigned(fleet, "h3", second))["start_after"]["early_from"] == early, "the same however often it is asked for"
    # Its own limit, and what others have booked on a link that it does not share.
    limited = await fleet.book(source="h3", destination="h4", volume_bytes=SECOND, after=second["id"], not_before=at(15))
    assert (await assigned(fleet, "h3", limited))["start_after"]["early_from"] == at(15)


async def test_room_that_its_predecessor_does_not_keep(fleet: Fleet, service: Service) -> None:
    await service.link("L2", "B", "C")
    fleet.agents["h5"] = await service.enrol("h5", "C")
    first = await fleet.book(volume_bytes=10 * SECOND)
    elsewhere = await service.book(6 * SECOND, source="B", destination="C")
    second = await fleet.book(destination="h5", volume_bytes=5 * SECOND, after=first["id"])
    waits = (await assigned(fleet, "h1", second))["start_after"]
    assert waits["early_from"] == elsewhere["plan"]["finish"] < second["plan"]["start"]
    taken = await service.book(2 * SECOND, source="B", destination="C")
    assert taken["plan"]["finish"] < second["plan"]["start"], "admitted after it, where it is not booked yet"
    assert (await assigned(fleet, "h1", second))["start_after"]["early_from"] == taken["plan"]["finish"]
    # A plan whose rate rises because others end has no room for its highest rate any earlier.
    await service.book(5 * SECOND, source="B", destination="C", rate_max_bps=5 * 10**8, not_before=second["plan"]["finish"])
    third = await fleet.book(destination="h5", volume_bytes=10 * SECOND, after=second["id"])
    assert len({s["rate_bps"] for s in third["plan"]["segments"]}) == 2
    assert (await assigned(fleet, "h1", third))["start_after"]["early_from"] is None


async def test_a_clock_starts_nobody_early(fleet: Fleet) -> None:
    clock = {"clock": {"offset_us": 0, "error_us": 100, "adjtimex_error_us": 100, "synchronised": True}, "reports": []}
    checked(await fleet.agents["h3"].post("/v1/agents/h3/reports", json=clock))
    first, second = await pair(fleet, signal={"kind": "clock"})
    waits = (await assigned(fleet, "h3", second))["start_after"]
    assert (waits["kind"], waits["early_from"]) == ("clock", None)
    assert (await fleet.transfer(second))["waiting_reason"]["code"] == "scheduled"
    await finish(fleet, first)
    waits = (await assigned(fleet, "h3", second))["start_after"]
    assert (waits["released"], waits["early_from"]) == (True, None)


async def test_how_soon_the_next_sender_hears_of_an_end(fleet: Fleet, service: Service, record_property: Any) -> None:
    """From the report of the predecessor's end to the wake-up of the successor's event stream, in this process."""
    chain = [await fleet.book(volume_bytes=SECOND)]
    for _ in range(20):
        chain.append(
            await fleet.book(volume_bytes=SECOND, source="h3", destination="h4", after=chain[-1]["id"], signal={"kind": "broker"})
        )
    service.clock.advance(5)
    heard = asyncio.Event()

    async def listen() -> None:
        revisions = service.app.state.broker.revisions
        async for _ in revisions.of(revisions.listen("h3")):
            heard.set()

    listening = asyncio.create_task(listen())
    took = []
    for number, transfer in enumerate(chain[:-1]):
        await asyncio.sleep(0)
        heard.clear()
        begin = time.perf_counter()
        done = asyncio.create_task(finish(fleet, transfer, "h4" if number else "h2"))
        await asyncio.wait_for(heard.wait(), 10)
        took.append(time.perf_counter() - begin)
        await done
        assert (await assigned(fleet, "h3", chain[number + 1]))["start_after"]["released"] is True
    listening.cancel()
    median = sorted(took)[len(took) // 2]
    record_property("median_ms", round(median * 1000, 2))
    print(f"from report to wake-up: median {median * 1000:.1f} ms, longest {max(took) * 1000:.1f} ms")


async def test_what_a_signal_did_is_in_the_history_of_the_transfer(fleet: Fleet, service: Service) -> None:
    first, second = await pair(fleet)
    said = {"code": "timed_out", "detail": "no word for 200 ms"}
    assert await fleet.report("h3", second, "signal", 1, **said) == "accepted"
    assert await fleet.report("h3", second, "signal", 1, **said) == "duplicate"
    assert await fleet.report("h4", second, "signal", 1, **said) == "not_yours"
    assert await fleet.report("h3", second, "signal", 2) == "code_missing"
    await finish(fleet, first)
    assert await fleet.report("h1", first, "signal", 3, code="released") == "accepted", "the handshake outlives the transfer"
    history = checked(await service.client.get(f"/v1/transfers/{second['id']}/events"))
    signals = [event for event in history if event["action"] == "transfer.signal"]
    assert [(event["actor"], event["after"]["code"], event["after"]["detail"]) for event in signals] == [
        ("agent h3", "timed_out", "no word for 200 ms")
    ]
    report = {"transfer_id": second["id"], "sequence": 9, "at": "2026-01-01T00:00:00Z", "kind": "signal", "code": "No such!"}
    problem(await fleet.agents["h3"].post("/v1/agents/h3/reports", json={"reports": [report]}), 422, "invalid", "reports.0.code")


async def test_a_batch_by_index(fleet: Fleet, service: Service) -> None:
    item = {"source": "h1", "destination": "h2", "volume_bytes": SECOND, **FILE}
    items = checked(await service.client.post("/v1/transfers/batch", json=[item, item | {"after": 0}, item | {"after": 1}]))[
        "items"
    ]
    first, second, third = [entry["transfer"] for entry in items]
    assert (second["after"], third["after"]) == (first["id"], second["id"])
    assert second["signal"] == {"kind": "direct", "timeout_s": None, "on_timeout": "start", "on_overrun": "delay"}
    assert first["plan"]["finish"] <= second["plan"]["start"] < third["plan"]["start"]
    for after, field in ((0, "0.after"), (1, "0.after"), (-1, "0.after")):
        problem(await service.client.post("/v1/transfers/batch", json=[item | {"after": after}, item]), 422, "invalid", field)
    problem(await service.client.post("/v1/transfers", json=item | {"after": 0}), 422, "invalid", "after")
    for wrong in (True, 1.0, "TR", ["x"]):
        assert (await service.client.post("/v1/transfers/batch", json=[item, item | {"after": wrong}])).status_code == 422
    assert await fleet.transfer(first)


async def test_those_that_take_turns_wait_for_each_other(fleet: Fleet, service: Service) -> None:
    sizes = (3, 1, 2)
    items = [
        {"source": "h1" if n != 1 else "h3", "destination": "h2", "volume_bytes": n * SECOND, "planner": "vifi", **FILE}
        for n in sizes
    ]
    items[2]["signal"] = {"kind": "broker"}
    made = checked(await service.client.post("/v1/transfers/batch", json=items))["items"]
    big, small, middle = [entry["transfer"] for entry in made]
    assert (small["after"], middle["after"], big["after"]) == (None, small["id"], middle["id"])
    assert (small["signal"], middle["signal"]["kind"], big["signal"]["kind"]) == (None, "broker", "direct")
    assert (await assigned(fleet, "h1", middle))["start_after"]["predecessor"]["host"] == "h3"


@pytest.mark.parametrize("capped", [True, False])
async def test_what_overlaps_does_not_follow(fleet: Fleet, capped: bool, service: Service) -> None:
    """Rates that are capped leave nobody to hand over to; nor do reservations, whose ends nobody reports."""
    more = (
        {"rate_max_bps": 3 * 10**8, "source": "h1", "destination": "h2", **FILE} if capped else {"source": "A", "destination": "B"}
    )
    items = [{"volume_bytes": n * SECOND, "planner": "vifi", **more} for n in (2, 2, 2)]
    made = checked(await service.client.post("/v1/transfers/batch", json=items))["items"]
    assert [entry["transfer"]["after"] for entry in made] == [None] * 3
    assert fleet


def at(seconds: float) -> str:
    return format_time(START_US + int(seconds * US_PER_S))
