# SPDX-License-Identifier: Apache-2.0
"""Paths, holding times, split transfers, joint planners and previews over REST."""

from typing import Any

import pytest

from broker.core.units import parse_time
from broker.planners import PLANNERS
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked

GBIT = 10**9
ASK = {"source": "A", "destination": "B", "volume_bytes": 125_000_000}
HOLD = {"source": "A", "destination": "B", "duration_s": 60, "rate_max_bps": 400_000_000, "rate_min_bps": 100_000_000}


@pytest.fixture
async def diamond(service: Service) -> Service:
    """A to B directly (L1), and over C and over D."""
    await service.link("L1", "A", "B")
    for node, rate in (("C", GBIT), ("D", GBIT // 2)):
        await service.link(f"A{node}", "A", node, rate)
        await service.link(f"{node}B", node, "B", rate)
    return service


async def post(service: Service, body: dict[str, Any]) -> Any:
    return checked(await service.client.post("/v1/transfers", json=body), 201)


def rows(transfer: dict[str, Any]) -> list[tuple[float, float, int, tuple[str, ...]]]:
    start = parse_time(at(0))
    return [
        ((parse_time(s["begin"]) - start) / 1e6, (parse_time(s["end"]) - start) / 1e6, s["rate_bps"], tuple(s["path"]))
        for s in transfer["plan"]["segments"]
    ]


# -- paths -----------------------------------------------------------------------------------------------------------------------------


async def test_the_answer_shows_the_options(diamond: Service) -> None:
    asked = {"paths": 2, "split": True, "shortest_segment_s": 0.5, "most_segments": 9, "best_effort": True}
    transfer = await post(diamond, ASK | asked)
    assert {name: transfer[name] for name in asked} == asked
    assert transfer["path"] is None and transfer["duration_s"] is None
    assert checked(await diamond.client.get(f"/v1/transfers/{transfer['id']}")) == transfer
    plain = await post(diamond, ASK)
    assert [plain[name] for name in ("paths", "path", "split", "shortest_segment_s", "most_segments", "best_effort")] == [
        4, None, False, None, None, False,
    ]  # fmt: skip


async def test_the_path_that_was_asked_for_is_taken(diamond: Service) -> None:
    transfer = await post(diamond, ASK | {"path": ["AD", "DB"]})
    assert transfer["plan"]["paths"] == [["AD", "DB"]] and transfer["path"] == ["AD", "DB"]
    for path in (["AC"], ["AC", "AD"], ["CB", "AC"], ["none"]):
        answer = await diamond.client.post("/v1/transfers", json=ASK | {"path": path})
        problem(answer, 409, "no-path", "path")
    problem(await diamond.client.post("/v1/transfers", json=ASK | {"path": []}), 422, "invalid", "path")
    problem(await diamond.client.post("/v1/transfers", json=ASK | {"path": ["L1"], "split": True}), 422, "invalid", "split")
    await diamond.audit()


async def test_a_second_path_is_taken_when_it_is_earlier(diamond: Service) -> None:
    await post(diamond, ASK | {"volume_bytes": 1_250_000_000})
    assert (await post(diamond, ASK))["plan"]["paths"] == [["AC", "CB"]]
    assert (await post(diamond, ASK | {"paths": 1}))["plan"]["paths"] == [["L1"]]
    await diamond.audit()


async def test_a_split_transfer_uses_all_paths_at_once(diamond: Service) -> None:
    transfer = await post(diamond, ASK | {"volume_bytes": 312_500_000, "split": True, "not_before": at(10)})
    assert sorted(transfer["plan"]["paths"]) == [["AC", "CB"], ["AD", "DB"], ["L1"]]
    assert transfer["plan"]["finish"] == at(11) and transfer["plan"]["metrics"]["mean_rate_bps"] == 2_500_000_000
    limited = await post(diamond, ASK | {"split": True, "rate_max_bps": 1_200_000_000, "not_before": at(20)})
    assert limited["plan"]["metrics"]["mean_rate_bps"] <= 1_200_000_000
    await diamond.audit()
    checked(await diamond.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    await diamond.audit()


async def test_what_agents_cannot_do_is_refused(service: Service) -> None:
    await service.link()
    await service.enrol("h1", "A")
    await service.enrol("h2", "B")
    managed = {"source": "h1", "destination": "h2", "payload": {"path": "x"}}
    answer = await service.client.post("/v1/transfers", json=managed | {"volume_bytes": 1000, "split": True})
    problem(answer, 422, "unsupported", "split")
    answer = await service.client.post("/v1/transfers", json=managed | {"duration_s": 60})
    problem(answer, 422, "unsupported", "duration_s")
    booked = await post(service, managed | {"volume_bytes": 1000})
    answer = await service.client.patch(f"/v1/transfers/{booked['id']}", json={"split": True})
    problem(answer, 422, "unsupported", "split")


# -- holding times (class 2) -----------------------------------------------------------------------------------------------------------


async def test_a_holding_time_is_held(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await post(service, HOLD | {"not_before": at(10)})
    assert transfer["duration_s"] == 60 and transfer["volume_bytes"] is None
    assert rows(transfer) == [(10, 70, 400_000_000, ("L1",))]
    assert transfer["booked_bytes"] == 60 * 50_000_000
    await service.audit()
    clock.advance(100)
    done = checked(await service.client.post(f"/v1/transfers/{transfer['id']}/cancel"))
    assert done["state"] == "CANCELED"


async def test_the_rest_of_a_holding_time_is_held_after_a_pause(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await post(service, HOLD | {"not_before": at(10)})
    path = f"/v1/transfers/{transfer['id']}"
    clock.now_us = parse_time(at(30))
    paused = checked(await service.client.post(path + "/pause"))
    assert len(paused["plan"]["segments"]) == 1
    await service.audit()
    clock.now_us = parse_time(at(100))
    resumed = checked(await service.client.post(path + "/resume"))
    held = [end - begin for begin, end, _, _ in rows(resumed)]
    assert sum(held) == pytest.approx(60, abs=1e-5) and sum(held) >= 60 and len(held) == 2
    await service.audit()


async def test_the_rest_of_a_holding_time_is_planned_anew_when_capacity_is_lost(diamond: Service, clock: Clock) -> None:
    transfer = await post(diamond, HOLD | {"not_before": at(10)})
    clock.now_us = parse_time(at(30))
    checked(await diamond.client.patch("/v1/links/L1", json={"capacity_bps": 0, "on_broken": "replan"}))
    moved = checked(await diamond.client.get(f"/v1/transfers/{transfer['id']}"))
    assert moved["state"] == "RESERVED" and moved["plan"]["paths"] == [["L1"], ["AC", "CB"]]
    assert sum(end - begin for begin, end, _, _ in rows(moved)) == pytest.approx(60, abs=1e-5)
    await diamond.audit()


async def test_a_holding_time_is_changed_like_a_new_booking(service: Service, clock: Clock) -> None:
    await service.link()
    transfer = await post(service, HOLD | {"not_before": at(10)})
    path = f"/v1/transfers/{transfer['id']}"
    longer = checked(await service.client.patch(path, json={"duration_s": 90.5}))
    assert longer["duration_s"] == 90.5 and rows(longer) == [(10, 100.5, 400_000_000, ("L1",))]
    problem(await service.client.patch(path, json={"volume_bytes": 5}), 409, "conflict", "volume_bytes")
    problem(await service.client.patch(path, json={"duration_s": None}), 422, "invalid", "duration_s")
    clock.now_us = parse_time(at(40))
    problem(await service.client.patch(path, json={"duration_s": 20}), 409, "conflict", "duration_s")
    shorter = checked(await service.client.patch(path, json={"duration_s": 40}))
    assert sum(end - begin for begin, end, _, _ in rows(shorter)) == pytest.approx(40, abs=1e-5)
    await service.audit()
    volume = await post(service, ASK)
    answer = await service.client.patch(f"/v1/transfers/{volume['id']}", json={"duration_s": 5})
    problem(answer, 409, "conflict", "duration_s")


# -- changes ---------------------------------------------------------------------------------------------------------------------------


async def test_path_and_shape_can_be_changed(diamond: Service) -> None:
    transfer = await post(diamond, ASK | {"not_before": at(10)})
    path = f"/v1/transfers/{transfer['id']}"
    detour = checked(await diamond.client.patch(path, json={"path": ["AD", "DB"]}))
    assert detour["plan"]["paths"] == [["AD", "DB"]]
    problem(await diamond.client.patch(path, json={"path": ["AD"]}), 409, "no-path", "path")
    free = checked(await diamond.client.patch(path, json={"path": None, "split": True}))
    assert len(free["plan"]["paths"]) == 3
    whole = checked(await diamond.client.patch(path, json={"split": False, "most_segments": 1, "shortest_segment_s": 1}))
    assert whole["plan"]["paths"] == [["L1"]] and whole["shortest_segment_s"] == 1
    for name in ("paths", "split", "best_effort"):
        problem(await diamond.client.patch(path, json={name: None}), 422, "invalid", name)
    given_up = checked(await diamond.client.patch(path, json={"best_effort": True}))
    assert given_up["best_effort"] and given_up["plan"] == whole["plan"]
    await diamond.audit()


# -- previews --------------------------------------------------------------------------------------------------------------------------


async def test_a_preview_shows_what_the_change_then_does(diamond: Service, clock: Clock) -> None:
    transfer = await post(diamond, ASK | {"not_before": at(10)})
    path = f"/v1/transfers/{transfer['id']}"
    before = (await diamond.client.get(path)).json(), await version(diamond), await history(diamond, path)
    said = checked(await diamond.client.patch(path, params={"preview": True}, json={"volume_bytes": 250_000_000}))
    assert said["preview"] is True and said["freed"] == [] and said["plan"]["finish"] == at(12)
    freed = checked(await diamond.client.post(path + "/cancel", params={"preview": True}))
    assert freed["state"] == "CANCELED"
    assert freed["freed"] == transfer["plan"]["segments"]
    assert checked(await diamond.client.post(path + "/pause", params={"preview": True}))["freed"] == freed["freed"]
    refused = await diamond.client.patch(path, params={"preview": True}, json={"deadline": at(10.5)})
    problem(refused, 409, "infeasible")
    assert before == ((await diamond.client.get(path)).json(), await version(diamond), await history(diamond, path))
    really = checked(await diamond.client.patch(path, json={"volume_bytes": 250_000_000}))
    assert (really["plan"], really["revision"]) == (said["plan"], said["revision"])
    clock.now_us = parse_time(at(11))
    half = checked(await diamond.client.post(path + "/cancel", params={"preview": True}))
    assert [s["end"] for s in half["freed"]] == [at(12)]
    assert 0 <= parse_time(half["freed"][0]["begin"]) - parse_time(at(11)) < 1000
    await diamond.audit()


async def version(service: Service) -> list[int]:
    return [link["version"] for link in checked(await service.client.get("/v1/links"))]


async def history(service: Service, path: str) -> Any:
    return checked(await service.client.get(path + "/events"))


# -- planners --------------------------------------------------------------------------------------------------------------------------


async def test_every_planner_can_be_asked(diamond: Service) -> None:
    found = checked(await diamond.client.post("/v1/quotes", json=ASK | {"deadline": at(100), "planners": ["*"]}))["quotes"]
    assert [quote["planner"] for quote in found] == list(PLANNERS)
    for quote in found:
        assert quote["admitted"], quote
        assert quote["books"] == PLANNERS[quote["planner"]].traits.books
        assert quote["plan"]["finish"] <= at(100) and quote["plan"]["paths"] and quote["plan"]["segments"]
    assert sum(await version(diamond)) == 0


async def test_every_planner_that_books_books(diamond: Service) -> None:
    for name, planner in PLANNERS.items():
        answer = await diamond.client.post("/v1/transfers", json=ASK | {"deadline": at(1000), "planner": name})
        if planner.traits.books:
            assert checked(answer, 201)["planner"] == name
        else:
            said = problem(answer, 422, "unsupported", "planner")
            assert "/v1/quotes" in said["detail"]
        await diamond.audit()


@pytest.mark.parametrize("name", ["spaghetti", "alap"])
async def test_planners_that_need_a_deadline_say_so(name: str, diamond: Service) -> None:
    answer = await diamond.client.post("/v1/transfers", json=ASK | {"planner": name})
    assert answer.status_code in (409, 422)
    problem(answer, answer.status_code, None, "deadline")


@pytest.mark.parametrize("name", ["vifi", "optimal"])
async def test_a_batch_is_planned_together(name: str, service: Service) -> None:
    """Three transfers, the largest first; others of the batch are planned one by one."""
    await service.link()
    asks = [ASK | {"volume_bytes": n * 125_000_000, "planner": name, "not_before": at(10), "deadline": at(60)} for n in (3, 2, 1)]
    asks.insert(1, ASK | {"volume_bytes": 10**12, "deadline": at(20)})
    asks.append(ASK | {"planner": name, "source": "nowhere"})
    items = checked(await service.client.post("/v1/transfers/batch", json=asks))["items"]
    assert [item["status"] for item in items] == [201, 409, 201, 201, 422]
    if name == "vifi":  # virtual finish times order them: the smallest first
        finishes = [items[n]["transfer"]["plan"]["finish"] for n in (3, 2, 0)]
        assert finishes == sorted(finishes) and finishes[0] == at(11) and finishes[-1] == at(16)
    await service.audit()


async def test_a_joint_batch_is_bounded(service: Service) -> None:
    await service.link()
    asks = [ASK | {"volume_bytes": 1000, "planner": "vifi", "deadline": at(100)}] * 101
    items = checked(await service.client.post("/v1/transfers/batch", json=asks))["items"]
    assert {item["status"] for item in items} == {413}
    assert "/v1/plans" in items[0]["problem"]["detail"]
