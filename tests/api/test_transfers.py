# SPDX-License-Identifier: Apache-2.0
"""Booking, changing, cancelling and listing transfers over REST."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from broker.core.units import format_time
from broker.fleet.tokens import Scope
from tests.api.carried import managed, reported
from tests.api.problems import problem
from tests.api.readings import calendar
from tests.service import START_US, Clock, Service, at, checked, client_of, running

ASK = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}


async def ledger(service: Service, link: str = "L1") -> int:
    return checked(await service.client.get(f"/v1/links/{link}"))["version"]


# -- idempotency ---------------------------------------------------------------------------------------------------------------------


async def test_one_key_is_one_booking(service: Service) -> None:
    await service.link()
    headers = {"Idempotency-Key": "k1"}
    first = await service.client.post("/v1/transfers", json=ASK, headers=headers)
    again = await service.client.post("/v1/transfers", json=ASK, headers=headers)
    assert (first.status_code, first.json(), first.headers["etag"]) == (again.status_code, again.json(), again.headers["etag"])
    assert await ledger(service) == 1
    other = await service.client.post("/v1/transfers", json={**ASK, "volume_bytes": 1}, headers=headers)
    problem(other, 422, "idempotency-key-reused", "Idempotency-Key")
    other = await service.client.post("/v1/transfers/batch", json=[ASK], headers=headers)
    problem(other, 422, "idempotency-key-reused", "Idempotency-Key")
    assert await ledger(service) == 1


async def test_a_refusal_is_kept_under_its_key(service: Service) -> None:
    await service.link()
    body = {**ASK, "deadline": at(0.5)}
    answers = [await service.client.post("/v1/transfers", json=body, headers={"Idempotency-Key": "no"}) for _ in range(2)]
    first, again = (problem(answer, 409, "infeasible") for answer in answers)
    assert first.pop("request_id") != again.pop("request_id") and first == again


async def test_keys_of_two_callers_never_meet(service: Service) -> None:
    await service.link()
    stranger = service.as_token(await service.token(Scope.SUBMIT))
    headers = {"Idempotency-Key": "k"}
    answers = [checked(await client.post("/v1/transfers", json=ASK, headers=headers), 201) for client in (service.client, stranger)]
    assert answers[0]["id"] != answers[1]["id"]


@pytest.mark.parametrize("apps", [1, 2])
async def test_one_key_sixteen_times_at_once(apps: int, service: Service, database_url: str, clock: Clock) -> None:
    """Through one process, and through two of them."""
    await service.link()
    token = service.client.headers["authorization"].split()[1]
    async with running(database_url, clock) as other:
        clients = [service.client, client_of(other, token)][:apps]
        calls = [
            clients[n % apps].post("/v1/transfers", json=ASK | {"label": str(n % 2)}, headers={"Idempotency-Key": f"k{n % 2}"})
            for n in range(16)
        ]
        answers = [checked(response, 201) for response in await asyncio.gather(*calls)]
    assert Counter((a["label"], a["id"]) for a in answers).most_common() == [
        (("0", answers[0]["id"]), 8),
        (("1", answers[1]["id"]), 8),
    ]
    assert len(checked(await service.client.get("/v1/transfers"))["items"]) == 2
    await service.audit()


async def test_a_key_of_a_batch(service: Service) -> None:
    await service.link()
    items = [ASK, {**ASK, "source": "X"}, ASK]
    answers = [
        checked(await service.client.post("/v1/transfers/batch", json=items, headers={"Idempotency-Key": "b"})) for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert [item["status"] for item in answers[0]["items"]] == [201, 422, 201]
    assert await ledger(service) == 2


# -- admission -----------------------------------------------------------------------------------------------------------------------


async def test_a_refusal_explains_itself(service: Service) -> None:
    await service.link()
    first = await service.book(250_000_000)
    said = problem(await service.client.post("/v1/transfers", json={**ASK, "deadline": at(2.5)}), 409, "infeasible")
    assert said["binding"]["link"] == "L1"
    assert said["binding"]["reservations"] == [first["id"]]
    offers = {offer["kind"]: offer for offer in said["counter_offers"]}
    # What is offered can be had.
    fits = {**ASK, "deadline": at(2.5), "volume_bytes": offers["largest_volume"]["volume_bytes"]}
    quote = checked(await service.client.post("/v1/quotes", json=fits))["quotes"][0]
    assert quote["admitted"], quote
    in_time = {**ASK, "deadline": offers["smallest_deadline"]["deadline"]}
    checked(await service.client.post("/v1/transfers", json=in_time), 201)
    assert offers["earliest_finish"]["finish"] == offers["smallest_deadline"]["deadline"]


async def test_an_exabyte_is_booked_when_there_is_no_hurry(service: Service) -> None:
    await service.link(capacity_bps=10**15)
    transfer = await service.book(10**18)
    assert transfer["plan"]["segments"][0]["rate_bps"] == 10**15
    await service.audit()


async def test_a_batch_answers_for_each(service: Service) -> None:
    await service.link()
    items = [ASK, {**ASK, "destination": "A"}, {**ASK, "deadline": at(1.5)}, {**ASK, "planner": "x"}, {**ASK, "planner": "fbls"}]
    found = checked(await service.client.post("/v1/transfers/batch", json=items))["items"]
    assert [item["status"] for item in found] == [201, 422, 409, 422, 201]
    assert [(item["problem"] or {}).get("type", "").rpartition("/")[2] for item in found] == [
        "",
        "invalid",
        "infeasible",
        "unknown-planner",
        "",
    ]
    assert found[0]["transfer"]["id"] in found[2]["problem"]["binding"]["reservations"]
    await service.audit()


async def test_quotes_of_several_planners(service: Service) -> None:
    await service.link()
    found = checked(await service.client.post("/v1/quotes", json={**ASK, "planners": ["vbls", "fbls", "none"]}))["quotes"]
    assert [(quote["planner"], quote["admitted"]) for quote in found] == [("vbls", True), ("fbls", True), ("none", False)]
    assert found[2]["problem"]["type"].endswith("/unknown-planner")
    assert await ledger(service) == 0


async def test_links_with_mtu_channels_and_slots(service: Service) -> None:
    await service.link("L1", "A", "B", mtu_bytes=1500)
    await service.link("L2", "B", "C", channel_bps=70_000_000, slot_us=250_000)
    for body in (
        {},
        {"destination": "C"},
        {"source": "B", "destination": "C"},
        {"destination": "C", "planner": "fbls", "rate_max_bps": 700_000_000},
    ):
        await service.book(200_000_000, **body)
        await service.audit()
    for segment in [s for t in checked(await service.client.get("/v1/transfers"))["items"] for s in t["plan"]["segments"]]:
        assert "L2" not in segment["path"] or segment["rate_bps"] % 70_000_000 == 0
    assert max(booked for _, _, booked in await calendar(service)) <= 10**9 * 1460 // 1538


# -- life ----------------------------------------------------------------------------------------------------------------------------


async def test_cancel_gives_back_at_once(service: Service) -> None:
    await service.link()
    empty = await calendar(service)
    transfer = await service.book(not_before=at(10), deadline=at(100))
    assert [booked for _, _, booked in await calendar(service)][:3] == [0, 10**9, 0]
    gone = checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    assert gone["state"] == "CANCELED" and gone["plan"]["segments"] == []
    assert await calendar(service) == empty
    twice = checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    assert twice == gone
    await service.audit()


async def test_cancel_half_way_keeps_the_past(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await service.book(250_000_000)
    clock.advance(1)
    gone = checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    assert len(gone["plan"]["segments"]) == 1 and gone["plan"]["finish"] < transfer["plan"]["finish"]
    assert (await calendar(service))[-1][0] == gone["plan"]["finish"]
    await service.audit()


async def test_hold_commit_and_run_out(service: Service, clock: Clock) -> None:
    await service.link()
    kept, lost = [await service.book(hold=True, not_before=at(1000)) for _ in range(2)]
    assert (
        kept["state"] == "HELD"
        and kept["waiting_reason"]["code"] == "held"
        and kept["waiting_reason"]["until"] == kept["hold_until"]
    )
    done = checked(await service.client.post(f"/v1/transfers/{kept['id']}/commit"))
    assert (done["state"], done["hold_until"], done["plan"]) == ("RESERVED", None, kept["plan"])
    assert checked(await service.client.post(f"/v1/transfers/{kept['id']}/commit")) == done
    problem(await service.client.post(f"/v1/transfers/{lost['id']}/pause"), 409, "conflict")
    clock.advance(301)
    problem(await service.client.post(f"/v1/transfers/{lost['id']}/commit"), 409, "conflict")
    await service.audit()


async def test_pause_and_resume(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await service.book(250_000_000)
    path = f"/v1/transfers/{transfer['id']}"
    clock.advance(1)
    paused = checked(await service.client.post(path + "/pause"))
    assert paused["paused"] and paused["waiting_reason"]["code"] == "paused"
    assert checked(await service.client.post(path + "/pause")) == paused
    assert (await calendar(service))[-1][2] == 0
    clock.advance(10)
    going = checked(await service.client.post(path + "/resume"))
    assert not going["paused"] and going["waiting_reason"] is None
    assert going["promised_finish"] == going["plan"]["finish"] > transfer["promised_finish"], (
        "who resumes agrees to what that gives"
    )
    booked = sum(volume(segment) for segment in going["plan"]["segments"])
    assert 0 <= booked - 250_000_000 <= 250
    await service.audit()


def volume(segment: dict[str, Any]) -> int:
    from broker.core.units import parse_time

    return segment["rate_bps"] * (parse_time(segment["end"]) - parse_time(segment["begin"])) // 8_000_000


async def test_a_refused_change_keeps_the_booking_bit_for_bit(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    await service.book()
    path = f"/v1/transfers/{transfer['id']}"
    before = (checked(await service.client.get(path)), await calendar(service), await ledger(service))
    problem(await service.client.patch(path, json={"volume_bytes": 250_000_000, "deadline": at(1.5)}), 409, "infeasible")
    assert (checked(await service.client.get(path)), await calendar(service), await ledger(service)) == before
    changed = checked(await service.client.patch(path, json={"volume_bytes": 250_000_000}))
    assert changed["volume_bytes"] == 250_000_000 and changed["revision"] == transfer["revision"] + 1
    await service.audit()


async def test_a_change_may_use_what_the_transfer_itself_holds(service: Service) -> None:
    await service.link()
    transfer = await service.book(not_before=at(10), deadline=at(11))
    changed = checked(await service.client.patch(f"/v1/transfers/{transfer['id']}", json={"volume_bytes": 124_000_000}))
    assert changed["plan"]["start"] == at(10)
    moved = checked(await service.client.patch(f"/v1/transfers/{transfer['id']}", json={"not_before": None, "deadline": None}))
    assert moved["plan"]["start"] < at(1)
    await service.audit()


async def test_preconditions(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    path = f"/v1/transfers/{transfer['id']}"
    tag = (await service.client.get(path)).headers["etag"]
    changed = await service.client.patch(path, json={"label": "x"}, headers={"If-Match": tag})
    assert checked(changed)["label"] == "x" and changed.headers["etag"] != tag
    said = problem(await service.client.patch(path, json={"label": "y"}, headers={"If-Match": tag}), 412, "precondition-failed")
    assert said["revision"] == 2
    for action in ("commit", "cancel", "pause", "resume"):
        problem(await service.client.post(f"{path}/{action}", headers={"If-Match": tag}), 412, "precondition-failed")
    checked(await service.client.post(f"{path}/cancel", headers={"If-Match": "*"}))
    response = await service.client.patch("/v1/links/L1", json={"metric": 1}, headers={"If-Match": '"7"'})
    problem(response, 412, "precondition-failed")
    problem(await service.client.delete("/v1/links/L1", headers={"If-Match": '"7"'}), 412, "precondition-failed")


async def test_of_two_changes_at_once_one_is_told(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    path, tag = f"/v1/transfers/{transfer['id']}", {"If-Match": '"1"'}
    answers = await asyncio.gather(*(service.client.patch(path, json={"label": str(n)}, headers=tag) for n in range(8)))
    assert sorted(response.status_code for response in answers) == [200] + [412] * 7


# -- lists ---------------------------------------------------------------------------------------------------------------------------


async def test_pages_over_changing_data(service: Service) -> None:
    """New rows come and old ones change state while a client turns pages: each old one is seen exactly once."""
    await service.link()
    old = [(await service.book(1_000_000, label=f"n{n}"))["id"] for n in range(25)]
    seen: list[str] = []
    cursor = None
    for page_number in range(100):
        query = {"limit": 4} | ({"cursor": cursor} if cursor else {})
        page = checked(await service.client.get("/v1/transfers", params=query))
        seen += [item["id"] for item in page["items"]]
        await service.book(1_000_000)
        await service.client.post(f"/v1/transfers/{old[page_number % 25]}/cancel")
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == old[::-1]


async def test_filters(service: Service) -> None:
    await service.link()
    await service.link("L2", "B", "C")
    physics = await service.book(label="Run 7: 100%_done", project="physics")
    biology = await service.book(source="B", destination="C", project="biology", hold=True)
    await service.client.post(f"/v1/transfers/{physics['id']}/cancel")

    async def ids(**query: str) -> list[str]:
        return [item["id"] for item in checked(await service.client.get("/v1/transfers", params=query))["items"]]

    assert await ids(state="HELD") == [biology["id"]]
    assert checked(await service.client.get("/v1/transfers?state=HELD&state=CANCELED"))["items"].__len__() == 2
    assert await ids(project="physics") == [physics["id"]]
    assert await ids(node="C") == [biology["id"]] and await ids(node="A") == [physics["id"]]
    assert await ids(node="B") == [biology["id"], physics["id"]]
    assert await ids(search="run 7") == await ids(search="100%") == [physics["id"]]
    assert await ids(search="100x") == await ids(search="%x_") == []
    assert await ids(search=biology["id"][-8:]) == [biology["id"]]
    assert await ids(mode="managed") == []
    assert await ids(project="physics", state="HELD") == []


async def test_the_answer_shows_what_was_asked(service: Service) -> None:
    await service.link()
    asked = {
        "rate_max_bps": 10**8, "rate_min_bps": 10**6, "not_before": at(10), "deadline": at(60), "priority": 7, "planner": "fbls",
        "project": "p", "label": "ü \U0001f680", "metadata": {"a": [1, None, "ß"]}, "mode": "reserve",
    }  # fmt: skip
    transfer = await service.book(10_000_000, **asked)
    assert {name: transfer[name] for name in asked} == asked
    assert checked(await service.client.get(f"/v1/transfers/{transfer['id']}")) == transfer
    segments = transfer["plan"]["segments"]
    assert [(s["begin"], s["end"], s["rate_bps"], s["path"]) for s in segments] == [(at(10), at(10.8), 10**8, ["L1"])]
    assert transfer["promised_finish"] == transfer["plan"]["finish"] == format_time(START_US + 10_800_000)


async def test_a_running_transfer_that_cannot_keep_a_new_deadline_is_refused_with_offers(service: Service, clock: Clock) -> None:
    """What fits until then may be less than what it has carried already."""
    await service.link()
    sender, _ = await service.enrol("h1", "A"), await service.enrol("h2", "B")
    moved = await managed(service)
    clock.advance(60)
    await reported(sender, "h1", moved["id"], ("started", 0, 2), ("progress", 125_000_000 * 58, 60))
    changed: dict[str, Any] = {"json": {"deadline": at(65)}, "params": {"preview": True}}
    refused = problem(await service.client.patch(f"/v1/transfers/{moved['id']}", **changed), 409, "infeasible")
    assert "earliest_finish" in {offer["kind"] for offer in refused["counter_offers"]} and refused["binding"]["link"]
