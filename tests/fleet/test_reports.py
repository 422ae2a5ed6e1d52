# SPDX-License-Identifier: Apache-2.0
"""What agents do over REST: enrol once, read their assignments, and report in whatever order and as often as networks make it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from broker.core.units import format_time, parse_time
from tests.api.problems import problem
from tests.service import Clock, Service, checked, client_of

VOLUME = 125_000_000
SUM = "sha256:" + "a" * 64


@dataclass
class Pair:
    """Two enrolled hosts and a managed transfer of one second between them."""

    service: Service
    sender: httpx.AsyncClient
    receiver: httpx.AsyncClient
    transfer: dict[str, Any]

    async def report(self, host: str, *reports: dict[str, Any], status: int = 200) -> Any:
        client = self.sender if host == "h1" else self.receiver
        at = format_time(self.service.clock())
        given = [{"transfer_id": self.transfer["id"], "at": at, **report} for report in reports]
        return checked(await client.post(f"/v1/agents/{host}/reports", json={"reports": given}), status)

    async def now(self) -> dict[str, Any]:
        return checked(await self.service.client.get(f"/v1/transfers/{self.transfer['id']}"))

    async def assigned(self, host: str) -> dict[str, Any]:
        client = self.sender if host == "h1" else self.receiver
        return checked(await client.get(f"/v1/agents/{host}/assignments"))


@pytest.fixture
async def pair(service: Service, clock: Clock) -> AsyncIterator[Pair]:
    await service.link()
    sender, receiver = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    transfer = await service.book(
        VOLUME, source="h1", destination="h2", payload={"path": "run7/x.h5", "destination_path": "in/x.h5"}
    )
    assert transfer["mode"] == "managed" and transfer["booked_bytes"] > VOLUME
    yield Pair(service, sender, receiver, transfer)
    await service.audit()


def accepted(answer: dict[str, Any]) -> list[int]:
    return [item["sequence"] for item in answer["accepted"]]


def ignored(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(item["sequence"], item["code"]) for item in answer["ignored"]]


async def test_a_transfer_from_end_to_end(pair: Pair, clock: Clock) -> None:
    first, second = await pair.assigned("h1"), await pair.assigned("h2")
    (send,), (receive,) = first["assignments"], second["assignments"]
    assert (send["role"], receive["role"]) == ("send", "receive")
    assert (send["source_path"], send["destination_path"]) == ("run7/x.h5", None)
    assert (receive["source_path"], receive["destination_path"]) == (None, "in/x.h5")
    assert send["key"] == receive["key"] and len(send["key"]) == 64
    assert send["peer"] == {"host": "h2", "data_address": "127.0.0.1:7411", "tls_fingerprint": None}
    clock.now_us = parse_time(pair.transfer["plan"]["start"])
    assert accepted(await pair.report("h1", {"sequence": 1, "kind": "started"})) == [1]
    assert (await pair.now())["state"] == "ACTIVE"
    clock.advance(0.5)
    await pair.report("h1", {"sequence": 2, "kind": "progress", "bytes": 50_000_000, "rate_bps": 10**9})
    await pair.report("h2", {"sequence": 1, "kind": "progress", "bytes": 60_000_000, "rate_bps": 9 * 10**8})
    assert ((await pair.now())["bytes_done"], (await pair.now())["measured_bps"]) == (60_000_000, 9 * 10**8)
    clock.advance(0.4)
    done = await pair.report("h2", {"sequence": 2, "kind": "finished", "bytes": VOLUME, "checksum": SUM})
    assert accepted(done) == [2]
    finished = await pair.now()
    assert (finished["state"], finished["checksum"], finished["bytes_done"]) == ("FINISHED", SUM, VOLUME)
    assert accepted(await pair.report("h1", {"sequence": 3, "kind": "sent", "checksum": SUM})) == [3]
    assert (await pair.assigned("h1"))["assignments"] == [] == (await pair.assigned("h2"))["assignments"]
    assert (await pair.assigned("h1"))["revision"] > first["revision"]
    measured = checked(await pair.service.client.get(f"/v1/transfers/{pair.transfer['id']}/measurements"))["items"]
    assert [(item["host"], item["sequence"]) for item in measured] == [("h1", 1), ("h1", 2), ("h2", 1), ("h2", 2), ("h1", 3)]


async def test_each_report_counts_once(pair: Pair) -> None:
    progress = {"sequence": 5, "kind": "progress", "bytes": 10}
    assert accepted(await pair.report("h1", progress)) == [5]
    assert ignored(await pair.report("h1", progress)) == [(5, "duplicate")]
    twice = await pair.report(
        "h1", {"sequence": 6, "kind": "progress", "bytes": 20}, {"sequence": 6, "kind": "progress", "bytes": 20}
    )
    assert accepted(twice) == [6] and ignored(twice) == [(6, "duplicate")]
    assert accepted(await pair.report("h2", progress)) == [5], "the other host counts for itself"


async def test_reports_out_of_order(pair: Pair) -> None:
    assert accepted(await pair.report("h1", {"sequence": 9, "kind": "progress", "bytes": 900})) == [9]
    assert accepted(await pair.report("h1", {"sequence": 3, "kind": "progress", "bytes": 300})) == [3]
    assert (await pair.now())["bytes_done"] == 900
    late = await pair.report("h1", {"sequence": 2, "kind": "progress", "bytes": 200}, {"sequence": 1, "kind": "started"})
    assert sorted(accepted(late)) == [1, 2]
    assert ((await pair.now())["state"], (await pair.now())["bytes_done"]) == ("ACTIVE", 900)


async def test_reports_that_are_not_for_this_host_to_say(pair: Pair, clock: Clock) -> None:
    other = await pair.service.enrol("h3", "A")
    at = format_time(clock())
    report = {"transfer_id": pair.transfer["id"], "sequence": 1, "at": at, "kind": "progress", "bytes": 1}
    answer = checked(await other.post("/v1/agents/h3/reports", json={"reports": [report]}))
    assert ignored(answer) == [(1, "not_yours")]
    problem(await other.post("/v1/agents/h1/reports", json={"reports": [report]}), 403, "forbidden")
    problem(await other.get("/v1/agents/h1/assignments"), 403, "forbidden")
    problem(await pair.service.client.get("/v1/agents/h1/assignments"), 403, "forbidden")
    assert ignored(await pair.report("h2", {"sequence": 1, "kind": "started"})) == [(1, "not_yours")]
    assert ignored(await pair.report("h2", {"sequence": 2, "kind": "shortfall"})) == [(2, "not_yours")]
    assert ignored(await pair.report("h1", {"sequence": 1, "kind": "finished", "bytes": VOLUME})) == [(1, "not_yours")]
    report |= {"transfer_id": "tr_none"}
    assert ignored(checked(await pair.sender.post("/v1/agents/h1/reports", json={"reports": [report]}))) == [
        (1, "unknown_transfer")
    ]
    assert (await pair.now())["bytes_done"] == 0


async def test_reports_on_what_has_ended(pair: Pair) -> None:
    await pair.service.client.post(f"/v1/transfers/{pair.transfer['id']}/cancel")
    kinds = ("started", "progress", "shortfall", "failed")
    answer = await pair.report("h1", *({"sequence": n, "kind": kind, "bytes": 5} for n, kind in enumerate(kinds, 1)))
    assert ignored(answer) == [(n, "ended") for n in range(1, 5)]
    assert ((await pair.now())["state"], (await pair.now())["bytes_done"]) == ("CANCELED", 0)


async def test_a_finish_with_other_bytes_is_none(pair: Pair) -> None:
    answer = await pair.report("h2", {"sequence": 1, "kind": "finished", "bytes": VOLUME - 1, "checksum": SUM})
    assert ignored(answer) == [(1, "wrong_volume")]
    assert (await pair.now())["state"] == "RESERVED"


async def test_a_failure_gives_back_what_is_booked(pair: Pair, clock: Clock) -> None:
    await pair.report("h1", {"sequence": 1, "kind": "failed", "code": "disk_full", "detail": "no room on /data", "bytes": 77})
    failed = await pair.now()
    assert (failed["state"], failed["bytes_done"], failed["plan"]["segments"]) == ("FAILED", 77, [])
    assert failed["waiting_reason"] == {"code": "disk_full", "detail": "no room on /data", "limited_by": "h1", "until": None}


async def test_a_shortfall_books_the_rest(pair: Pair, clock: Clock) -> None:
    clock.now_us = parse_time(pair.transfer["plan"]["start"])
    await pair.report("h1", {"sequence": 1, "kind": "started"})
    before = await pair.assigned("h1")
    clock.advance(0.8)
    assert accepted(await pair.report("h1", {"sequence": 2, "kind": "shortfall", "bytes": 25_000_000})) == [2]
    after = await pair.assigned("h1")
    assert after["revision"] > before["revision"]
    assert after["assignments"][0]["plan_revision"] == before["assignments"][0]["plan_revision"] + 1
    now = await pair.now()
    assert now["waiting_reason"]["code"] == "behind"
    # By the old plan until the hosts have heard of the new one, which carries what is left then, and not what they carry meanwhile once more.
    spans = [(max(parse_time(s["begin"]), clock.now_us), parse_time(s["end"]), s["rate_bps"]) for s in now["plan"]["segments"]]
    ahead = sum(rate * max(end - begin, 0) for begin, end, rate in spans) // 8_000_000
    assert 100_000_000 <= ahead <= 1.01 * 100_000_000 + 0.05 * 125_000_000


async def test_a_shortfall_at_the_end_does_not_stand_still_for_the_lead(pair: Pair, clock: Clock) -> None:
    """Nobody follows a plan any more that has ended: the lead once left the link idle for half a second over two percent of a file."""
    clock.now_us = parse_time(pair.transfer["plan"]["start"])
    await pair.report("h1", {"sequence": 1, "kind": "started"})
    clock.now_us = parse_time(pair.transfer["plan"]["finish"]) + 20_000
    await pair.report("h1", {"sequence": 2, "kind": "shortfall", "bytes": VOLUME - 2_000_000})
    begins = [parse_time(segment["begin"]) for segment in (await pair.now())["plan"]["segments"]]
    assert clock.now_us <= begins[-1] <= clock.now_us + 100_000
    await pair.service.audit()


async def test_a_shortfall_that_breaks_the_deadline_says_so(service: Service, clock: Clock) -> None:
    await service.link()
    sender, receiver = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    deadline = format_time(clock.now_us + 4_000_000)
    transfer = await service.book(VOLUME, source="h1", destination="h2", payload={"path": "x"}, deadline=deadline)
    pair = Pair(service, sender, receiver, transfer)
    clock.advance(3.5)
    await pair.report("h1", {"sequence": 1, "kind": "started"}, {"sequence": 2, "kind": "shortfall", "bytes": 0})
    now = await pair.now()
    assert (now["waiting_reason"]["code"], now["deadline"], now["state"]) == ("promise_broken", None, "ACTIVE")
    assert now["plan"]["finish"] == now["waiting_reason"]["until"] > deadline
    await service.audit()


async def test_what_a_host_does_now(pair: Pair, clock: Clock) -> None:
    async def load(host: str) -> tuple[int, ...]:
        shown = checked(await pair.service.client.get(f"/v1/hosts/{host}"))
        (listed,) = (one for one in checked(await pair.service.client.get("/v1/hosts")) if one["name"] == host)
        assert listed == shown
        return tuple(shown[name] for name in ("transfers", "booked_bps", "applied_bps", "sending_bps", "receiving_bps"))

    assert await load("h1") == (1, 0, 0, 0, 0)
    clock.now_us = parse_time(pair.transfer["plan"]["start"]) + 1000
    booked = pair.transfer["plan"]["segments"][0]["rate_bps"]
    going = {"kind": "progress", "bytes": 1, "rate_bps": 70, "applied_rate_bps": 80}
    await pair.report("h1", {"sequence": 1, "kind": "started"}, {"sequence": 2, **going})
    assert await load("h1") == (1, booked, 80, 70, 0)
    assert await load("h2") == (1, 0, 0, 0, 70)
    clock.advance(11)
    assert (await load("h1"))[2:] == (0, 0, 0), "said too long ago"
    shown = checked(await pair.service.client.get("/v1/hosts/h1"))
    assert shown["fetched_revision"] is None or shown["fetched_revision"] <= shown["revision"]


async def test_assignments_are_conditional_and_pushed_by_revision(pair: Pair) -> None:
    first = await pair.sender.get("/v1/agents/h1/assignments")
    tag = {"If-None-Match": first.headers["etag"]}
    same = await pair.sender.get("/v1/agents/h1/assignments", headers=tag)
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
    await pair.service.client.post(f"/v1/transfers/{pair.transfer['id']}/pause")
    paused = checked(await pair.sender.get("/v1/agents/h1/assignments", headers=tag))
    assert [(a["paused"], a["segments"]) for a in paused["assignments"]] == [(True, [])]


# -- enrolment -----------------------------------------------------------------------------------------------------------------------

ENROL = {"data_address": "192.0.2.7:7411", "agent_version": "0.1.0", "capabilities": {"pacing": True}}


async def enrolment_token(service: Service, host: str = "h1", node: str = "A", **more: Any) -> str:
    body = {"host": host, "node": node, "nic_bps": 10**10, **more}
    return checked(await service.client.post("/v1/hosts/enrolment-tokens", json=body), 201)["token"]


async def test_an_enrolment_token_is_good_for_one_use(service: Service, clock: Clock) -> None:
    await service.link()
    stranger = client_of(service.app, "")
    token = await enrolment_token(service)
    answers = await asyncio.gather(*(stranger.post("/v1/agents/enrol", json={"token": token, **ENROL}) for _ in range(6)))
    assert sorted(response.status_code for response in answers) == [201] + [401] * 5
    problem(await stranger.post("/v1/agents/enrol", json={"token": token, **ENROL}), 401, "unauthorized")
    problem(await stranger.post("/v1/agents/enrol", json={"token": "bwe_wrong", **ENROL}), 401, "unauthorized")
    expired = await enrolment_token(service, "h2", ttl_s=5)
    clock.advance(6)
    problem(await stranger.post("/v1/agents/enrol", json={"token": expired, **ENROL}), 401, "unauthorized")
    (host,) = checked(await service.client.get("/v1/hosts"))
    assert (host["name"], host["up"], host["capabilities"]) == ("h1", True, {"pacing": True})
    links = {link["id"]: link for link in checked(await service.client.get("/v1/links")) if link["host"] == "h1"}
    assert {(link["source"], link["target"], link["capacity_bps"]) for link in links.values()} == {
        ("h1", "A", 10**10),
        ("A", "h1", 10**10),
    }
    problem(await service.client.delete("/v1/links/h1~up"), 409, "conflict")


async def test_two_tokens_for_one_host_at_once(service: Service) -> None:
    await service.link()
    stranger = client_of(service.app, "")
    secrets = [await enrolment_token(service) for _ in range(4)]
    answers = await asyncio.gather(*(stranger.post("/v1/agents/enrol", json={"token": secret, **ENROL}) for secret in secrets))
    assert sorted(response.status_code for response in answers) == [201, 401, 401, 401], [response.text for response in answers]
    (joined,) = (response for response in answers if response.status_code == 201)
    agent = service.as_token(joined.json()["agent_token"])
    checked(await agent.get("/v1/agents/h1/assignments"))  # it is the host, and stays it


async def test_a_host_that_enrols_again_loses_its_old_token(pair: Pair) -> None:
    before = await pair.assigned("h1")
    again = await pair.service.enrol("h1", "A")
    problem(await pair.sender.get("/v1/agents/h1/assignments"), 401, "unauthorized")
    after = checked(await again.get("/v1/agents/h1/assignments"))
    assert after["revision"] > before["revision"] and len(after["assignments"]) == 1


@pytest.mark.parametrize("taken", ["h1~up", "h1~down"])
async def test_names_that_stand_in_the_way_of_a_nic(taken: str, service: Service) -> None:
    await service.link()
    await service.link(taken, "A", "B")
    token = await enrolment_token(service)
    response = await client_of(service.app, "").post("/v1/agents/enrol", json={"token": token, **ENROL})
    assert response.status_code == 409, response.text


async def test_a_host_is_not_a_node(service: Service) -> None:
    await service.link()
    body = {"host": "A", "node": "B", "nic_bps": 1}
    problem(await service.client.post("/v1/hosts/enrolment-tokens", json=body), 422, "invalid", "host")
    problem(
        await service.client.post("/v1/hosts/enrolment-tokens", json=body | {"host": "h", "node": "Z"}), 422, "unknown-node", "node"
    )


async def test_a_drained_host_takes_nothing_new(pair: Pair) -> None:
    checked(await pair.service.client.patch("/v1/hosts/h2", json={"drained": True}))
    ask = {"source": "h1", "destination": "h2", "volume_bytes": 1, "payload": {"path": "y"}}
    refused = await pair.service.client.post("/v1/transfers", json=ask)
    assert 400 <= refused.status_code < 500 and "drained" in refused.text, refused.text
    assert (await pair.now())["state"] == "RESERVED"
    checked(await pair.service.client.patch("/v1/hosts/h2", json={"drained": False}))
    checked(await pair.service.client.post("/v1/transfers", json=ask), 201)
