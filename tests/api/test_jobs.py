# SPDX-License-Identifier: Apache-2.0
"""Plans and simulations as jobs: what is answered at once, what is shown meanwhile, who may do what, and what is refused."""

import csv
import io
import json
from typing import Any

import httpx
import pytest

from broker.fleet.tokens import Scope
from broker.jobs.long import look_for_work
from broker.jobs.nudge import Nudge
from broker.settings import Settings
from tests.api.problems import problem
from tests.service import START_US, Service, at, checked

JSON = {"Content-Type": "application/json"}
NET = {"links": [{"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}]}
SIMULATION = {"requests": 50, "load": 0.8, "planners": ["vbls", "fbls"], "seed": 3}


async def work(service: Service, **settings: Any) -> None:
    """What a worker does when it looks."""
    await look_for_work(service.database, service.clock, Settings(**settings), lambda: False)


async def late(service: Service) -> list[str]:
    """Two transfers that were booked as late as possible, and could come much earlier."""
    await service.link()
    wishes = {"not_before": at(200), "deadline": at(1000), "planner": "alap"}
    return [(await service.book(2 * 10**9, **wishes))["id"] for _ in range(2)]


async def post(service: Service, path: str, body: Any, **headers: str) -> httpx.Response:
    return await service.client.post(f"/v1/{path}", json=body, headers=headers)


async def test_a_plan_from_question_to_result(service: Service) -> None:
    ids = await late(service)
    response = await post(service, "plans", {"objective": "completion"})
    job = checked(response, 202)
    assert response.headers["location"] == f"/v1/plans/{job['id']}" and response.headers["etag"] == f'"{job["revision"]}"'
    assert (job["state"], job["progress"], job["result"], job["error"], job["started"]) == ("QUEUED", 0, None, None, None)
    assert job["request"]["time_limit_s"] == 30 and job["request"]["apply"] is False
    await work(service)
    shown = await service.client.get(response.headers["location"])
    done = checked(shown)
    assert (done["state"], done["progress"], done["owner"]) == ("DONE", 1, job["owner"])
    assert shown.headers["etag"] != response.headers["etag"]
    result = done["result"]
    assert {change["transfer_id"] for change in result["changes"]} == set(ids)
    assert result["changes"][0].keys() == {"transfer_id", "label", "source", "destination", "promised", "before", "after"}
    assert result["after"]["mean_finish_s"] < result["before"]["mean_finish_s"] and not result["applied"]
    assert "agreement" not in result and result["links"].keys() == {"L1"}
    page = checked(await service.client.get("/v1/plans"))
    assert [item["id"] for item in page["items"]] == [job["id"]] and page["items"][0]["result"] is None
    actions = [e["action"] for e in checked(await service.client.get("/v1/audit-log", params={"search": job["id"]}))["items"]]
    assert actions == ["job.done", "job.started", "job.queued"]

    # Looked at, and applied: once, however often it is said.
    for _ in range(2):
        applied = checked(await service.client.post(f"/v1/plans/{job['id']}/apply"))
        assert applied["result"]["applied"] and applied["result"]["applied_at"]
    for change in result["changes"]:
        transfer = checked(await service.client.get(f"/v1/transfers/{change['transfer_id']}"))
        assert transfer["plan"]["finish"] == change["after"]["finish"] < transfer["promised_finish"] == change["promised"]
    events = checked(await service.client.get("/v1/audit-log", params={"search": "transfer.replanned"}))["items"]
    assert len(events) == 2 and all(e["before"]["finish"] > e["after"]["finish"] for e in events)
    await service.audit()


async def test_an_old_result_says_how_to_go_on(service: Service) -> None:
    await late(service)
    waiting = checked(await post(service, "plans", {"objective": "completion"}), 202)
    refused = problem(await service.client.post(f"/v1/plans/{waiting['id']}/apply"), 409, "conflict")
    assert refused["state"] == "QUEUED" and "wait" in refused["detail"]
    await work(service)
    await service.book(1000, not_before=at(1000))
    refused = problem(await service.client.post(f"/v1/plans/{waiting['id']}/apply"), 409, "conflict")
    assert refused["changed"] == {"kind": "links", "ids": ["L1"]} and "POST /v1/plans" in refused["detail"]
    assert not checked(await service.client.get(f"/v1/plans/{waiting['id']}"))["result"]["applied"]
    old = checked(await post(service, "plans", {"objective": "completion", "review_s": 10}), 202)
    await work(service)
    service.clock.advance(20)
    assert problem(await service.client.post(f"/v1/plans/{old['id']}/apply"), 409, "conflict")["changed"]["kind"] == "late"
    nothing = checked(await post(service, "plans", {"project": "nobody's"}), 202)
    await work(service)
    assert "nothing to apply" in problem(await service.client.post(f"/v1/plans/{nothing['id']}/apply"), 409, "conflict")["detail"]
    stale = await service.client.post(f"/v1/plans/{old['id']}/apply", headers={"If-Match": '"1"'})
    problem(stale, 412, "precondition-failed")
    await service.audit()


async def test_the_same_key_is_the_same_job(service: Service) -> None:
    await service.link()
    for path, body, other in (("plans", {}, {"apply": True}), ("simulations", SIMULATION, SIMULATION | {"seed": 4})):
        first = checked(await post(service, path, body, **{"Idempotency-Key": path}), 202)
        again = await post(service, path, body, **{"Idempotency-Key": path})
        assert checked(again, 202)["id"] == first["id"] and again.headers["location"].endswith(first["id"])
        problem(await post(service, path, other, **{"Idempotency-Key": path}), 422, "idempotency-key-reused", "Idempotency-Key")
        assert len(checked(await service.client.get(f"/v1/{path}"))["items"]) == 1
    problem(await post(service, "simulations", {}, **{"Idempotency-Key": "plans"}), 422)
    await service.audit()


async def test_pages(service: Service) -> None:
    await service.link()
    made = [checked(await post(service, "plans", {"time_limit_s": n + 1}), 202)["id"] for n in range(5)]
    checked(await post(service, "simulations", SIMULATION), 202)
    seen, cursor = [], None
    while True:
        parameters = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = checked(await service.client.get("/v1/plans", params=parameters))
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == made[::-1]
    await service.client.post(f"/v1/plans/{made[2]}/cancel")
    canceled = checked(await service.client.get("/v1/plans", params={"state": "CANCELED"}))["items"]
    assert [item["id"] for item in canceled] == [made[2]]
    problem(await service.client.get(f"/v1/simulations/{made[0]}"), 404, "not-found")
    problem(await service.client.get("/v1/plans", params={"cursor": "x"}), 422, "invalid", "cursor")


async def test_only_so_many_may_wait(service: Service) -> None:
    service.app.state.settings.job_queue = 2
    for _ in range(2):
        checked(await post(service, "plans", {}), 202)
    refused = problem(await post(service, "plans", {}, **{"Idempotency-Key": "k"}), 503, "unavailable")
    assert refused["limit"] == 2
    (first, _) = checked(await service.client.get("/v1/plans"))["items"]
    checked(await service.client.post(f"/v1/plans/{first['id']}/cancel"))
    checked(await post(service, "plans", {}, **{"Idempotency-Key": "k"}), 202)


async def test_a_simulation_on_a_network_of_its_own(service: Service) -> None:
    job = checked(await post(service, "simulations", SIMULATION | {"network": NET}), 202)
    problem(await service.client.get(f"/v1/simulations/{job['id']}", params={"format": "csv"}), 409, "conflict")
    assert "network" not in checked(await service.client.get("/v1/simulations"))["items"][0]["request"]
    await work(service)
    done = checked(await service.client.get(f"/v1/simulations/{job['id']}"))
    assert done["state"] == "DONE", done
    assert [found["planner"] for found in done["result"]["planners"]] == ["vbls", "fbls"]
    assert done["request"]["network"]["links"][0]["id"] == "L1" and "plot_png" not in done["result"]
    table = await service.client.get(f"/v1/simulations/{job['id']}", params={"format": "csv"})
    assert table.status_code == 200 and table.headers["content-type"].startswith("text/csv")
    assert len(list(csv.reader(io.StringIO(table.text)))) > 2
    plot = await service.client.get(f"/v1/simulations/{job['id']}/plot.png")
    assert plot.headers["content-type"] == "image/png" and plot.content.startswith(b"\x89PNG")


async def test_a_simulation_on_the_brokers_network(service: Service) -> None:
    problem(await post(service, "simulations", SIMULATION), 422, "invalid", "network")
    await service.link()
    first, second = [checked(await post(service, "simulations", SIMULATION), 202)["id"] for _ in range(2)]
    await work(service)
    results = [checked(await service.client.get(f"/v1/simulations/{job_id}"))["result"] for job_id in (first, second)]
    assert results[0] is not None and results[0]["workload"] == results[1]["workload"]


async def test_whose_simulation_it_is(service: Service) -> None:
    await service.link()
    mine, other = [service.as_token(await service.token(Scope.SUBMIT)) for _ in range(2)]
    job = checked(await mine.post("/v1/simulations", json=SIMULATION), 202)
    path = f"/v1/simulations/{job['id']}"
    assert checked(await other.get(path))["owner"] == job["owner"]
    assert problem(await other.post(f"{path}/cancel"), 403, "forbidden")["scope"] == "operate"
    assert checked(await mine.post(f"{path}/cancel"))["state"] == "CANCELED"
    assert checked(await service.client.post(f"{path}/cancel"))["state"] == "CANCELED"  # said again: no change


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/redis.sock", "redis://nowhere.invalid:1"])
async def test_without_redis_a_job_is_queued_all_the_same(service: Service, url: str) -> None:
    service.app.state.broker.nudge = Nudge(url)
    assert checked(await post(service, "plans", {}), 202)["state"] == "QUEUED"


PLANS: list[tuple[Any, str]] = [
    ({"objective": "profit"}, "objective"),
    ({"objective": None}, "objective"),
    ({"time_limit_s": 0}, "time_limit_s"),
    ({"time_limit_s": 601}, "time_limit_s"),
    ({"time_limit_s": 1.5}, "time_limit_s"),
    ({"time_limit_s": "5"}, "time_limit_s"),
    ({"review_s": -1}, "review_s"),
    ({"review_s": 86_401}, "review_s"),
    ({"apply": "yes"}, "apply"),
    ({"apply": 1}, "apply"),
    ({"project": 5}, "project"),
    ({"project": "a\0"}, "project"),
    ({"project": "\ud800"}, "project"),
    ({"links": []}, "links"),
    ({"links": ["none"]}, "links.0"),
    ({"links": ["L1", "L\0"]}, "links.1"),
    ({"links": "L1"}, "links"),
    ({"links": ["L1"] * 1001}, "links"),
    ({"transfers": []}, "transfers"),
    ({"transfers": ["tr_none"]}, "transfers.0"),
    ({"transfers": ["\0"]}, "transfers.0"),
    ({"transfers": ["tr_x"] * 10_001}, "transfers"),
    ({"colour": "red"}, "colour"),
]
SIMULATIONS: list[tuple[Any, str]] = [
    ({"load": None}, "load"),
    ({"load": "much"}, "load"),
    ({"load": float("inf")}, "load"),
    ({"load": float("nan")}, "load"),
    ({"load": 10**400}, "load"),
    ({"requests": 0}, "requests"),
    ({"requests": 10**9}, "requests"),
    ({"requests": 2**70}, "requests"),
    ({"planners": []}, "planners"),
    ({"planners": ["astrology"]}, "planners"),
    ({"planners": ["\0"]}, "planners"),
    ({"nodes": ["A", "X\0"]}, "nodes"),
    ({"nodes": ["A", "\ud800"]}, "nodes"),
    ({"sizes": {"distribution": "\0"}}, "sizes"),
    ({"colour": "red"}, "colour"),
    ({"network": "yesterday's"}, "network"),
    ({"network": None}, "network"),
    ({"network": {}}, "network"),
    ({"network": {"links": []}}, "network"),
    ({"network": {"links": [{"id": "L"}]}}, "network"),
    ({"network": {"links": [NET["links"][0] | {"capacity_bps": 0}]}}, "network"),
    ({"network": {"links": [NET["links"][0] | {"target": "A"}]}}, "network"),
    ({"network": {"links": NET["links"] * 2}}, "network"),
    ({"network": {"links": [NET["links"][0] | {"available": [{"from": at(5), "bps": 1}, {"from": at(5), "bps": 2}]}]}}, "network"),
]


async def test_bad_input(service: Service) -> None:
    await service.link()
    wrong = []
    for path, good, table in (("plans", {}, PLANS), ("simulations", SIMULATION, SIMULATIONS)):
        for change, field in table:
            response = await service.client.post(f"/v1/{path}", content=json.dumps({**good, **change}), headers=JSON)
            try:
                problem(response, 422, "invalid", field)
            except (AssertionError, KeyError) as fault:
                wrong.append(f"{path} {str(change)[:100]}: {str(fault)[:300]}")
        for content in (b"", b"null", b"[]", b'"x"'):
            problem(await service.client.post(f"/v1/{path}", content=content, headers=JSON), 422, "invalid")
        for content in (b"{", b"\xff", b"[" * 100_000):
            problem(await service.client.post(f"/v1/{path}", content=content, headers=JSON), 400, "malformed")
        for name in ("none", "%00", "x" * 300, "%F0%9F%9A%80"):
            for method, tail in (("GET", ""), ("POST", "/cancel")):
                assert (await service.client.request(method, f"/v1/{path}/{name}{tail}")).status_code == 404, (path, name)
        assert checked(await service.client.get(f"/v1/{path}"))["items"] == []
    assert not wrong, "\n".join(wrong)
    assert START_US
