# SPDX-License-Identifier: Apache-2.0
"""The life of a managed transfer as its two agents see it: assignments out, reports in, capacity back."""

import pytest

from broker.core.units import format_time
from tests.api.problems import problem
from tests.fleet.world import VOLUME, Fleet
from tests.service import SECRET, Service, checked

CHECKSUM = "sha256:" + "a" * 64


async def test_the_two_agents_are_told_the_two_sides_of_one_transfer(fleet: Fleet) -> None:
    booked = await fleet.book(
        payload={"path": "run/x.h5", "destination_path": "in/x.h5", "overwrite": True}, deadline="2026-01-02T00:00:00Z"
    )
    assert booked["mode"] == "managed" and booked["booked_bytes"] >= VOLUME + VOLUME // 100
    assert booked["plan"]["segments"][0]["path"] == ["h1~up", "L1", "h2~down"]
    told = {host: (await fleet.document(host)) for host in ("h1", "h2")}
    (send,), (receive,) = told["h1"]["assignments"], told["h2"]["assignments"]
    assert (send["role"], send["source_path"], send["destination_path"]) == ("send", "run/x.h5", None)
    assert (receive["role"], receive["source_path"], receive["destination_path"]) == ("receive", None, "in/x.h5")
    assert (send["peer"]["host"], receive["peer"]["host"]) == ("h2", "h1")
    assert send["peer"]["data_address"] == "127.0.0.1:7411"
    same = set(send) - {"role", "source_path", "destination_path", "peer"}
    assert {name: send[name] for name in same} == {name: receive[name] for name in same}
    assert send["segments"] == [{name: s[name] for name in ("begin", "end", "rate_bps")} for s in booked["plan"]["segments"]]
    assert (send["overwrite"], send["volume_bytes"], send["deadline"]) == (True, VOLUME, "2026-01-02T00:00:00Z")
    assert len(bytes.fromhex(send["key"])) == 32 and SECRET not in str(told)
    other = await fleet.book()
    keys = {assignment["key"] for assignment in (await fleet.document("h1"))["assignments"]}
    assert len(keys) == 2 and send["key"] in keys, other


async def test_a_hold_is_told_to_nobody_until_it_is_committed(fleet: Fleet, service: Service) -> None:
    held = await fleet.book(hold=True)
    assert (await fleet.document("h1"))["assignments"] == []
    checked(await service.client.post(f"/v1/transfers/{held['id']}/commit"))
    assert [a["transfer_id"] for a in (await fleet.document("h2"))["assignments"]] == [held["id"]]


async def test_reports_out_of_order_and_twice(fleet: Fleet) -> None:
    booked = await fleet.book()
    assert await fleet.report("h1", booked, "progress", 3, bytes=300, rate_bps=3) == "accepted"
    assert await fleet.report("h1", booked, "progress", 2, bytes=200, rate_bps=2) == "accepted"
    assert (await fleet.transfer(booked))["bytes_done"] == 300
    assert await fleet.report("h1", booked, "progress", 3, bytes=999) == "duplicate"
    assert await fleet.report("h2", booked, "finished", 2, bytes=VOLUME) == "accepted"
    # The copy of what ended it is a copy; what comes late for the first time changes nothing.
    assert await fleet.report("h2", booked, "finished", 2, bytes=VOLUME) == "duplicate"
    assert await fleet.report("h1", booked, "started", 1) == "ended"
    assert await fleet.report("h1", booked, "progress", 4, bytes=1) == "ended"
    assert await fleet.report("h1", booked, "failed", 5, code="internal") == "ended"
    done = await fleet.transfer(booked)
    assert (done["state"], done["bytes_done"]) == ("FINISHED", VOLUME)


async def test_one_post_with_everything_in_it(fleet: Fleet, service: Service) -> None:
    """The spool of an agent whose broker was away: in any order, with copies, with strangers among them."""
    booked = await fleet.book()
    service.clock.advance(5)

    def report(sequence: int, kind: str, **more: object) -> dict[str, object]:
        return {"transfer_id": booked["id"], "sequence": sequence, "at": "2026-01-01T00:00:03Z", "kind": kind, **more}

    shortfall = report(3, "shortfall", bytes=10)
    strangers = [report(9, "progress") | {"transfer_id": "tr_none"}, report(4, "finished", bytes=VOLUME)]
    taken = await fleet.send("h1", shortfall, report(2, "progress", bytes=9), shortfall, *strangers, report(1, "started"))
    assert [r["sequence"] for r in taken["accepted"]] == [1, 2, 3]
    assert sorted((r["sequence"], r["code"]) for r in taken["ignored"]) == [
        (3, "duplicate"),
        (4, "not_yours"),
        (9, "unknown_transfer"),
    ]
    (assignment,) = (await fleet.document("h1"))["assignments"]
    assert (assignment["plan_revision"], assignment["state"]) == (2, "ACTIVE")  # the shortfall counted once
    assert taken["revision"] == (await fleet.document("h1"))["revision"]


async def test_what_is_not_ones_own_changes_nothing(fleet: Fleet, service: Service) -> None:
    await service.link("L2", "B", "C")
    fleet.agents["h3"] = await service.enrol("h3", "C")
    managed, reserved = await fleet.book(), await service.book(source="h1", destination="h2", mode="reserve")
    for host, transfer, kind in (
        ("h3", managed, "failed"),
        ("h1", reserved, "failed"),
        ("h1", managed, "finished"),
        ("h2", managed, "started"),
    ):
        assert await fleet.report(host, transfer, kind, 1, bytes=VOLUME) == "not_yours"
    assert await fleet.report("h1", {"id": "tr_none"}, "failed", 1) == "unknown_transfer"
    assert [(await fleet.transfer(t))["state"] for t in (managed, reserved)] == ["RESERVED"] * 2
    assert (await fleet.document("h3"))["assignments"] == []
    problem(await fleet.agents["h3"].get("/v1/agents/h1/assignments"), 403, "forbidden")
    problem(await fleet.agents["h3"].post("/v1/agents/h1/reports", json={}), 403, "forbidden")


async def test_a_heartbeat_keeps_what_the_agent_says_of_itself(fleet: Fleet, service: Service) -> None:
    clock = {"offset_us": -120, "error_us": 300, "adjtimex_error_us": 1500, "synchronised": True}
    about = {"version": "9.9", "data_address": "192.0.2.7:7000", "tls_fingerprint": "ab" * 32, "capabilities": {"fq": True}}
    checked(await fleet.agents["h1"].post("/v1/agents/h1/reports", json={"clock": clock, "agent": about}))
    shown = checked(await service.client.get("/v1/hosts/h1"))
    assert {name: shown["clock"][name] for name in clock} == clock
    assert (shown["agent_version"], shown["capabilities"], shown["tls"]) == ("9.9", {"fq": True}, True)
    await fleet.book()
    peer = (await fleet.document("h2"))["assignments"][0]["peer"]
    assert peer == {"host": "h1", "data_address": "192.0.2.7:7000", "tls_fingerprint": "ab" * 32}
    assert (shown["up"], shown["state"]) == (True, "up")
    service.clock.advance(46)
    assert checked(await service.client.get("/v1/hosts/h1"))["state"] == "late"
    service.clock.advance(45)
    late = checked(await service.client.get("/v1/hosts/h1"))
    assert (late["up"], late["state"]) == (False, "down")


@pytest.mark.parametrize(
    "wrong",
    [
        {"sequence": 0},
        {"sequence": 2**63},
        {"bytes": -1},
        {"at": "now"},
        {"kind": "done"},
        {"checksum": "md5:x"},
        {"transfer_id": "\0"},
        {"x": 1},
    ],
)
async def test_a_report_that_is_none(service: Service, wrong: dict[str, object]) -> None:
    await service.link()
    agent = await service.enrol("h1", "A")
    good = {"transfer_id": "tr_x", "sequence": 1, "at": "2026-01-01T00:00:00Z", "kind": "progress"}
    problem(
        await agent.post("/v1/agents/h1/reports", json={"reports": [good | wrong]}),
        422,
        "invalid",
        f"reports.0.{next(iter(wrong))}",
    )


@pytest.mark.parametrize("drained", ["h1", "h2"])
async def test_a_drained_host_finishes_what_it_has_and_takes_nothing_new(fleet: Fleet, service: Service, drained: str) -> None:
    before = await fleet.book()
    assert checked(await service.client.patch(f"/v1/hosts/{drained}", json={"drained": True}))["drained"]
    given = {"source": "h1", "destination": "h2", "volume_bytes": 1, "payload": {"path": "x"}}
    field = "source" if drained == "h1" else "destination"
    refused = problem(await service.client.post("/v1/transfers", json=given), 409, "conflict", field)
    assert drained in refused["detail"]
    problem(await service.client.post("/v1/quotes", json=given), 409, "conflict", field)
    assert len((await fleet.document(drained))["assignments"]) == 1
    assert await fleet.report("h2", before, "finished", 1, bytes=VOLUME) == "accepted"
    # A host that enrols again is still drained: only the operator ends that.
    fleet.agents[drained] = await service.enrol(drained, "A" if drained == "h1" else "B")
    assert checked(await service.client.get(f"/v1/hosts/{drained}"))["drained"]
    problem(await service.client.post("/v1/transfers", json=given), 409, "conflict", field)
    checked(await service.client.patch(f"/v1/hosts/{drained}", json={"drained": False}))
    await fleet.book()


async def test_a_link_that_shrinks_under_a_managed_transfer(fleet: Fleet, service: Service) -> None:
    booked = await fleet.book()
    service.clock.advance(4)
    await fleet.report("h1", booked, "started", 1)
    problem(await service.client.patch("/v1/links/L1", json={"capacity_bps": 10**8}), 409, "breaks-promises")
    revision = (await fleet.document("h1"))["revision"]
    checked(await service.client.patch("/v1/links/L1", json={"capacity_bps": 10**8, "on_broken": "replan"}))
    document = await fleet.document("h1")
    (assignment,) = document["assignments"]
    assert document["revision"] > revision and assignment["plan_revision"] == 2
    now = format_time(service.clock.now_us)
    assert {s["rate_bps"] for s in assignment["segments"] if s["end"] > now} == {10**8}
    assert (await fleet.transfer(booked))["waiting_reason"]["limited_by"] == "L1"
    assert await fleet.report("h2", booked, "finished", 1, bytes=VOLUME) == "accepted"


async def test_a_host_is_removed_when_nothing_is_booked_on_it(fleet: Fleet, service: Service) -> None:
    booked = await fleet.book()
    refused = problem(await service.client.delete("/v1/hosts/h1"), 409, "breaks-promises")
    assert [promise["id"] for promise in refused["broken"]] == [booked["id"]]
    checked(await service.client.post(f"/v1/transfers/{booked['id']}/cancel"))
    checked(await service.client.delete("/v1/hosts/h1"), 204)
    problem(await service.client.delete("/v1/hosts/h1"), 404, "not-found")
    assert (await fleet.agents["h1"].get("/v1/agents/h1/assignments")).status_code == 401
    assert {link["id"] for link in checked(await service.client.get("/v1/links"))} == {"L1", "h2~up", "h2~down"}
    fleet.agents["h1"] = await service.enrol("h1", "A")
    await fleet.book()
