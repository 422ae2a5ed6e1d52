# SPDX-License-Identifier: Apache-2.0
"""Wrapped and observed transfers: what is asked for is checked against what the host can do, and only the sender has a say."""

from typing import Any

import pytest

from broker.desk.ground.policy import Policy
from broker.desk.service.desk import Desk
from broker.desk.service.timers import run_timers
from broker.store.transfers import Patience
from tests.api.problems import problem
from tests.fleet.world import VOLUME, Fleet
from tests.service import Service, checked

MATCH = {"payload": {"match": {"destination_ports": "5001-5010"}}}
PLAIN: dict[str, dict[str, Any]] = {"wrapped": {}, "observed": MATCH}


async def _book(f: Fleet, mode: str, **more: Any) -> Any:
    given = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "mode": mode} | PLAIN[mode] | more
    return checked(await f.service.client.post("/v1/transfers", json=given), 201)


async def _refused(f: Fleet, mode: str, field: str, **more: Any) -> Any:
    given = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "mode": mode} | PLAIN[mode] | more
    given = {name: value for name, value in given.items() if value is not None}
    answer = await f.service.client.post("/v1/transfers", json=given)
    assert 400 <= answer.status_code < 500
    document: dict[str, Any] = answer.json()
    assert field in [error["field"] for error in document["errors"]], document
    quoted = await f.service.client.post("/v1/quotes", json=given)
    assert quoted.status_code == answer.status_code and quoted.json()["errors"] == document["errors"]
    return document


async def _say(f: Fleet, host: str, **capabilities: Any) -> None:
    checked(await f.agents[host].post(f"/v1/agents/{host}/reports", json={"agent": {"capabilities": capabilities}}))


@pytest.mark.parametrize("mode", PLAIN)
async def test_only_the_sender_is_told(fleet: Fleet, mode: str) -> None:
    booked = await _book(fleet, mode)
    assert (booked["mode"], booked["bytes_done"]) == (mode, 0)
    assert booked["booked_bytes"] >= VOLUME + VOLUME // 100  # the margin of managed transfers
    (told,) = (await fleet.document("h1"))["assignments"]
    assert (told["mode"], told["role"], told["source_path"], told["volume_bytes"]) == (mode, "send", None, VOLUME)
    assert (await fleet.document("h2"))["assignments"] == []
    for kind in ("finished", "failed", "progress", "started"):
        assert await fleet.report("h2", booked, kind, 1, bytes=1, code="internal") == "not_yours"


async def test_a_match_is_completed_with_the_address_of_the_other_agent(fleet: Fleet) -> None:
    await _book(fleet, "observed")
    await _say(fleet, "h1", observe=[{"address": "peer", "destination_ports": "1024-65535"}, {"address": "192.0.2.0/24"}])
    await _book(fleet, "observed", destination="B", payload={"match": {"protocol": "udp", "address": "192.0.2.9"}})
    matches = [assignment["match"] for assignment in (await fleet.document("h1"))["assignments"]]
    ports = {"source_ports": None, "destination_ports": None}
    assert matches == [
        {"protocol": "tcp", "address": "127.0.0.1"} | ports | {"destination_ports": "5001-5010"},
        {"protocol": "udp", "address": "192.0.2.9"} | ports,
    ]
    await _book(fleet, "wrapped")
    assert (await fleet.document("h1"))["assignments"][-1]["match"] is None


@pytest.mark.parametrize("mode", PLAIN)
@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("source", {"source": "A"}),
        ("duration_s", {"volume_bytes": None, "duration_s": 5}),
        ("split", {"split": True}),
        ("mechanism", {"mechanism": "userland"}),
    ],
)
async def test_what_nobody_can_do_is_refused(fleet: Fleet, mode: str, field: str, more: dict[str, Any]) -> None:
    await _refused(fleet, mode, field, **more)


@pytest.mark.parametrize(
    ("field", "match"),
    [
        ("payload.match", None),
        ("payload.match.address", {"address": "dtn-b.example.org"}),
        ("payload.match.source_ports", {"source_ports": "5010-5001"}),
        ("payload.match.destination_ports", {"destination_ports": "0"}),
        ("payload.match.destination_ports", {"destination_ports": "80-65536"}),
    ],
)
async def test_a_match_that_is_none(fleet: Fleet, field: str, match: dict[str, Any] | None) -> None:
    await _refused(fleet, "observed", field, payload={"match": match} if match else {"path": "x"})


async def test_a_node_has_no_address_to_match(fleet: Fleet) -> None:
    await _refused(fleet, "observed", "payload.match.address", destination="B")
    await _refused(fleet, "observed", "mechanism", mechanism="pacing")


async def test_a_mechanism_that_the_host_lacks_is_refused_with_its_reason(fleet: Fleet, service: Service) -> None:
    await _book(fleet, "wrapped", mechanism="htb")  # nothing reported: nothing is known against it
    mechanisms = [
        {"name": "pacing", "available": True},
        {"name": "htb", "available": False, "reason": "needs CAP_NET_ADMIN"},
        {"name": "userland", "available": True},
    ]
    await _say(fleet, "h1", mechanisms=mechanisms)
    refused = await _refused(fleet, "wrapped", "mechanism", mechanism="htb")
    assert (refused["host"], refused["reason"], refused["available"]) == ("h1", "needs CAP_NET_ADMIN", ["pacing"])
    assert "needs CAP_NET_ADMIN" in (await _refused(fleet, "observed", "mechanism"))["detail"]
    managed = {"source": "h1", "destination": "h2", "volume_bytes": 1, "payload": {"path": "x"}}
    problem(await service.client.post("/v1/transfers", json=managed | {"mechanism": "fq"}), 422, "unsupported", "mechanism")
    await fleet.book(mechanism="userland")
    await _book(fleet, "wrapped", mechanism="pacing")
    mechanisms[1] = {"name": "htb", "available": True}
    await _say(fleet, "h1", mechanisms=mechanisms)
    await _book(fleet, "observed")


async def test_an_older_agent_names_its_mechanisms_and_modes(fleet: Fleet) -> None:
    await _say(fleet, "h1", mechanisms=["pacing"], modes=["managed", "wrapped"])
    await _refused(fleet, "wrapped", "mechanism", mechanism="htb")
    await _book(fleet, "wrapped", mechanism="pacing")
    assert "managed, wrapped" in (await _refused(fleet, "observed", "mode"))["detail"]
    await _say(fleet, "h2", mechanisms=["pacing"], modes=["managed"])  # the other end has nothing to do
    await _book(fleet, "wrapped")


@pytest.mark.parametrize("mode", PLAIN)
@pytest.mark.parametrize("moved", [VOLUME // 4, VOLUME + VOLUME // 200])
async def test_the_sender_says_how_much_it_was_and_the_rest_goes_back(
    fleet: Fleet, service: Service, mode: str, moved: int
) -> None:
    booked = await _book(fleet, mode)
    service.clock.advance(3)
    assert await fleet.report("h1", booked, "started", 1) == "accepted"
    assert await fleet.report("h1", booked, "progress", 2, bytes=moved, rate_bps=7) == "accepted"
    assert await fleet.report("h1", booked, "progress", 3, bytes=moved, rate_bps=8) == "accepted"
    seen = await fleet.transfer(booked)
    assert (seen["state"], seen["bytes_done"], seen["measured_bps"]) == ("ACTIVE", moved, 8)
    assert await fleet.report("h1", booked, "finished", 4, bytes=moved) == "accepted"
    done = await fleet.transfer(booked)
    assert (done["state"], done["bytes_done"]) == ("FINISHED", moved)
    free = checked(await service.client.get("/v1/links/L1/calendar", params={"points": 1000}))["steps"]
    assert all(step["booked_bps"] == 0 for step in free if step["begin"] > done["actual_finish"])


async def test_a_command_that_fails_and_one_that_falls_behind(fleet: Fleet, service: Service) -> None:
    failing, behind = await _book(fleet, "wrapped"), await _book(fleet, "wrapped")
    service.clock.advance(3)
    for transfer in (failing, behind):
        await fleet.report("h1", transfer, "started", 1)
    assert await fleet.report("h1", failing, "failed", 2, bytes=77, code="command_failed", detail="exit status 12") == "accepted"
    failed = await fleet.transfer(failing)
    assert (failed["state"], failed["bytes_done"]) == ("FAILED", 77)
    assert failed["waiting_reason"]["code"] == "command_failed"
    assert await fleet.report("h1", behind, "shortfall", 2, bytes=1000, rate_bps=10**8, applied_rate_bps=10**9) == "accepted"
    (told,) = (await fleet.document("h1"))["assignments"]
    assert told["plan_revision"] == 2
    assert told["segments"][-1]["rate_bps"] <= 10**8


async def test_change_pause_and_resume_give_the_agent_its_lead(fleet: Fleet, service: Service) -> None:
    booked = await _book(fleet, "wrapped", not_before="2026-01-01T00:10:00Z")
    changed = checked(
        await service.client.patch(
            f"/v1/transfers/{booked['id']}", json={"volume_bytes": 2 * VOLUME}, headers={"If-Match": f'"{booked["revision"]}"'}
        )
    )
    assert changed["booked_bytes"] >= 2 * (VOLUME + VOLUME // 100)
    refused = await service.client.patch(
        f"/v1/transfers/{booked['id']}", json={"split": True}, headers={"If-Match": f'"{changed["revision"]}"'}
    )
    problem(refused, 422, "unsupported", "split")
    checked(await service.client.post(f"/v1/transfers/{booked['id']}/pause"))
    (told,) = (await fleet.document("h1"))["assignments"]
    assert told["paused"]
    service.clock.advance(900)
    resumed = checked(await service.client.post(f"/v1/transfers/{booked['id']}/resume"))
    assert resumed["plan"]["start"] >= "2026-01-01T00:15:01.5"


async def test_a_wrapped_transfer_that_nobody_runs_is_given_up(fleet: Fleet, service: Service) -> None:
    booked = await _book(fleet, "wrapped")
    worker = Desk(service.database, service.clock, Policy())
    service.clock.advance(70)
    assert await run_timers(service.database, worker, service.clock(), Patience()) == 1
    assert (await fleet.transfer(booked))["state"] == "EXPIRED"
