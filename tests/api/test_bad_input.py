# SPDX-License-Identifier: Apache-2.0
"""Bad input of every kind gets a 4xx problem that names the field or the cause, never a 500, and changes nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.bodies import GOOD, JSON
from tests.api.problems import problem
from tests.service import Service, at

DEEP = "[" * 100_000 + "]" * 100_000
END_OF_TIME = "9999-12-31T23:59:59.999999Z"

# (what is changed in a good request, status, code, field that is named)
TRANSFERS: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({"source": "X"}, 422, "unknown-node", "source"),
    ({"destination": "X"}, 422, "unknown-node", "destination"),
    ({"destination": "A"}, 422, "invalid", "destination"),
    ({"source": "B", "destination": "A"}, 409, "no-path", "destination"),
    ({"volume_bytes": 0}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": -5}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": 10**18 + 1}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": 10**30}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": "5"}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": 5.0}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": True}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": None}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": float("nan")}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": float("inf")}, 422, "invalid", "volume_bytes"),
    ({"metadata": {"x": float("nan")}}, 422, "invalid", "metadata"),
    ({"metadata": {"x": [float("-inf")]}}, 422, "invalid", "metadata"),
    ({"volume_bytes": [1]}, 422, "invalid", "volume_bytes"),
    ({"duration_s": 60}, 422, "invalid", "volume_bytes"),
    ({"volume_bytes": None, "duration_s": 10**12}, 422, "invalid", "duration_s"),
    ({"volume_bytes": None, "duration_s": 0}, 422, "invalid", "duration_s"),
    ({"volume_bytes": None, "duration_s": "60"}, 422, "invalid", "duration_s"),
    ({"volume_bytes": None, "duration_s": float("nan")}, 422, "invalid", "duration_s"),
    ({"volume_bytes": None, "duration_s": 1e-9}, 422, "invalid", "duration_s"),
    ({"volume_bytes": None, "duration_s": 60, "deadline": at(30)}, 409, "infeasible", "deadline"),
    ({"volume_bytes": None, "duration_s": 60, "rate_min_bps": 2 * 10**9}, 409, "infeasible", "rate_min_bps"),
    ({"volume_bytes": None, "duration_s": 60, "planner": "vifi"}, 422, "unsupported", "duration_s"),
    ({"paths": 0}, 422, "invalid", "paths"),
    ({"paths": 17}, 422, "invalid", "paths"),
    ({"paths": True}, 422, "invalid", "paths"),
    ({"path": "L1"}, 422, "invalid", "path"),
    ({"path": []}, 422, "invalid", "path"),
    ({"path": ["L1"] * 257}, 422, "invalid", "path"),
    ({"path": ["\0"]}, 422, "invalid", "path.0"),
    ({"path": ["L9"]}, 409, "no-path", "path"),
    ({"path": ["L1", "L1"]}, 409, "no-path", "path"),
    ({"path": ["L1"], "split": True}, 422, "invalid", "split"),
    ({"split": "yes"}, 422, "invalid", "split"),
    ({"shortest_segment_s": 0}, 422, "invalid", "shortest_segment_s"),
    ({"shortest_segment_s": 1e-9}, 422, "invalid", "shortest_segment_s"),
    ({"shortest_segment_s": 86_401}, 422, "invalid", "shortest_segment_s"),
    ({"shortest_segment_s": float("inf")}, 422, "invalid", "shortest_segment_s"),
    ({"most_segments": 0}, 422, "invalid", "most_segments"),
    ({"most_segments": 10_001}, 422, "invalid", "most_segments"),
    ({"most_segments": 1.5}, 422, "invalid", "most_segments"),
    ({"best_effort": 1}, 422, "invalid", "best_effort"),
    ({"preempt": None}, 422, "invalid", "preempt"),
    ({"planner": "ifs"}, 422, "unsupported", "planner"),
    ({"planner": "spaghetti"}, 422, "unsupported", "deadline"),
    ({"planner": "alap"}, 422, "unsupported", "deadline"),
    ({"planner": "spaghetti", "deadline": at(1), "volume_bytes": 10**12}, 409, "infeasible", None),
    ({"planner": "optimal", "deadline": at(1), "volume_bytes": 10**12}, 409, "infeasible", None),
    ({"rate_max_bps": 0}, 422, "invalid", "rate_max_bps"),
    ({"rate_max_bps": 10**15 + 1}, 422, "invalid", "rate_max_bps"),
    ({"rate_min_bps": 10, "rate_max_bps": 9}, 422, "invalid", "rate_min_bps"),
    ({"rate_min_bps": 2 * 10**9}, 409, "infeasible", "rate_min_bps"),
    ({"deadline": at(-10)}, 422, "invalid", "deadline"),
    ({"not_before": at(100), "deadline": at(50)}, 422, "invalid", "deadline"),
    ({"not_before": at(100), "deadline": at(100)}, 422, "invalid", "deadline"),
    ({"deadline": "2030-01-01T00:00:00"}, 422, "invalid", "deadline"),
    ({"deadline": "2030-01-01"}, 422, "invalid", "deadline"),
    ({"deadline": "tomorrow"}, 422, "invalid", "deadline"),
    ({"deadline": 1893456000}, 422, "invalid", "deadline"),
    ({"deadline": "2030-13-01T00:00:00Z"}, 422, "invalid", "deadline"),
    ({"deadline": "0001-01-01T00:00:00+23:00"}, 422, "invalid", "deadline"),
    ({"not_before": END_OF_TIME}, 409, "infeasible", None),
    ({"not_before": "9999-12-31T23:59:59.500000Z", "volume_bytes": 10**18}, 409, "infeasible", None),
    ({"volume_bytes": 10**18, "rate_max_bps": 1}, 409, "infeasible", None),
    ({"volume_bytes": 10**18, "rate_max_bps": 1, "planner": "fbls"}, 409, "infeasible", None),
    ({"volume_bytes": 10**18, "deadline": at(10)}, 409, "infeasible", None),
    ({"volume_bytes": 10**18, "deadline": at(10), "planner": "fbls"}, 409, "infeasible", None),
    ({"volume_bytes": 10**18, "deadline": at(10), "rate_max_bps": 1}, 409, "infeasible", None),
    ({"planner": "astrology"}, 422, "unknown-planner", "planner"),
    ({"planner": 7}, 422, "invalid", "planner"),
    ({"colour": "red"}, 422, "invalid", "colour"),
    ({"priority": 10**9}, 422, "invalid", "priority"),
    ({"hold": "yes"}, 422, "invalid", "hold"),
    ({"hold": 1}, 422, "invalid", "hold"),
    ({"mode": "teleport"}, 422, "invalid", "mode"),
    ({"mode": "managed"}, 422, "invalid", "source"),
    ({"mode": "wrapped"}, 422, "invalid", "source"),
    ({"mode": "observed"}, 422, "invalid", "source"),
    ({"label": "a\0b"}, 422, "invalid", "label"),
    ({"label": "\ud800"}, 422, "invalid", "label"),
    ({"label": "x" * 501}, 422, "invalid", "label"),
    ({"project": "line\nbreak"}, 422, "invalid", "project"),
    ({"source": "A\0"}, 422, "invalid", "source"),
    ({"source": ""}, 422, "invalid", "source"),
    ({"source": "A" * 1000}, 422, "invalid", "source"),
    ({"source": None}, 422, "invalid", "source"),
    ({"metadata": {"x": "\0"}}, 422, "invalid", "metadata"),
    ({"metadata": {"\ud800": 1}}, 422, "invalid", "metadata"),
    ({"metadata": {"x": 10**40}}, 422, "invalid", "metadata"),
    ({"metadata": {"x": "y" * 20_000}}, 422, "invalid", "metadata"),
    ({"metadata": []}, 422, "invalid", "metadata"),
    ({"payload": {"path": ""}}, 422, "invalid", "payload.path"),
    ({"payload": {"path": "x", "mode": "0777"}}, 422, "invalid", "payload.mode"),
]


@pytest.fixture
async def booked(service: Service) -> AsyncIterator[Service]:
    """A service with a network, on which nothing may be booked in the end."""
    await service.link()
    yield service
    page = (await service.client.get("/v1/transfers")).json()
    assert page["items"] == []
    await service.audit()


async def test_bad_transfers(booked: Service) -> None:
    wrong = []
    for change, status, code, field in TRANSFERS:
        body = json.dumps({**GOOD, **change})
        for path, content in (("/v1/transfers", body), ("/v1/quotes", body), ("/v1/transfers/batch", f"[{body}]")):
            response = await booked.client.post(path, content=content, headers=JSON)
            assert response.status_code < 500, (change, path, response.text)
        response = await booked.client.post("/v1/transfers", content=body, headers=JSON)
        try:
            problem(response, status, code, field)
        except (AssertionError, KeyError) as fault:
            wrong.append(f"{str(change)[:100]}: {str(fault)[:400]}")
    assert not wrong, "\n".join(wrong)


BODIES = [
    (b"", 422, "invalid"),
    (b"{", 400, "malformed"),
    (b'{"source": "A",}', 400, "malformed"),
    (b'{"volume_bytes": 1e', 400, "malformed"),
    (b"null", 422, "invalid"),
    (b"[]", 422, "invalid"),
    (b'"text"', 422, "invalid"),
    (b"\xff\xfe\x00", 400, "malformed"),
    (b'{"volume_bytes": ' + b"9" * 10_000 + b"}", 400, "malformed"),
    (b"[" * 60_000 + b"]" * 60_000, 400, "malformed"),
    (b'{"metadata": {"a":' * 7_000, 400, "malformed"),
    (b'{"source": "A", "source": "B", "destination": "A", "volume_bytes": 5}', 409, "no-path"),
]


@pytest.mark.parametrize("path", ["/v1/transfers", "/v1/transfers/batch", "/v1/quotes", "/v1/links"])
async def test_bodies_that_are_no_json_objects(path: str, booked: Service) -> None:
    for content, status, code in BODIES:
        response = await booked.client.post(path, content=content, headers=JSON)
        if path == "/v1/quotes" and status == 409:
            continue  # a quote that says no is an answer
        assert 400 <= response.status_code < 500, (path, content[:40], response.text)
        assert response.headers["content-type"] == "application/problem+json"
        if path == "/v1/transfers":
            problem(response, status, code)


async def test_oversized_bodies(booked: Service) -> None:
    limit = booked.app.state.settings.body_limit_bytes
    large = b'{"label": "' + b"x" * limit + b'"}'

    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(large), 100_000):
            yield large[begin : begin + 100_000]

    for path in ("/v1/transfers", "/v1/links", "/v1/agents/enrol"):
        problem(await booked.client.post(path, content=large, headers=JSON), 413, "too-large")
        problem(await booked.client.post(path, content=chunks(), headers=JSON), 413, "too-large")
    problem(await booked.client.post("/v1/transfers", content=b"{}", headers={**JSON, "Content-Length": "1e9"}), 413, "too-large")


async def test_batches_out_of_bounds(booked: Service) -> None:
    problem(await booked.client.post("/v1/transfers/batch", json=[]), 422, "invalid")
    many = [GOOD] * (booked.app.state.settings.batch_limit + 1)
    assert problem(await booked.client.post("/v1/transfers/batch", json=many), 413, "too-large")["limit"] == 10_000
    problem(
        await booked.client.post("/v1/transfers/batch", json=[GOOD, {**GOOD, "volume_bytes": "5"}]),
        422,
        "invalid",
        "1.volume_bytes",
    )


async def test_bad_keys_and_preconditions(booked: Service) -> None:
    for key in ("", " ", "a b", "x" * 201, "ü"):
        headers = [(b"Idempotency-Key", key.encode("utf-8"))]
        problem(await booked.client.post("/v1/transfers", json=GOOD, headers=headers), 422, "invalid", "Idempotency-Key")
    for tag in ("x", '"-1"', '"9999999999999999999"', '"1", "2"'):
        response = await booked.client.patch("/v1/links/L1", json={"metric": 3}, headers={"If-Match": tag})
        problem(response, 422, "invalid", "If-Match")


LINK = {"id": "L9", "source": "A", "target": "B", "capacity_bps": 10**9}
LINKS: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({"id": "L1"}, 409, "exists", "id"),
    ({"id": "a b"}, 422, "invalid", "id"),
    ({"id": "\0"}, 422, "invalid", "id"),
    ({"target": "A"}, 422, "invalid", "target"),
    ({"capacity_bps": -1}, 422, "invalid", "capacity_bps"),
    ({"capacity_bps": 10**16}, 422, "invalid", "capacity_bps"),
    ({"capacity_bps": "10"}, 422, "invalid", "capacity_bps"),
    ({"mtu_bytes": 100}, 422, "invalid", "mtu_bytes"),
    ({"channel_bps": 0}, 422, "invalid", "channel_bps"),
    ({"slot_us": 0}, 422, "invalid", "slot_us"),
    ({"slot_us": 10**12}, 422, "invalid", "slot_us"),
    ({"metric": -1}, 422, "invalid", "metric"),
    ({"available": [{"from": at(5), "bps": 1}, {"from": at(5), "bps": 2}]}, 422, "invalid", "available.1.from"),
    ({"available": [{"from": at(5), "bps": 10**10}]}, 422, "invalid", "available.0.bps"),
    ({"available": [{"from": "noon", "bps": 1}]}, 422, "invalid", "available.0.from"),
    ({"colour": "red"}, 422, "invalid", "colour"),
]


async def test_bad_links(booked: Service) -> None:
    for change, status, code, field in LINKS:
        response = await booked.client.post("/v1/links", json={**LINK, **change})
        problem(response, status, code, field)
        if "id" not in change and "target" not in change:
            problem(await booked.client.patch("/v1/links/L1", json=change), status, code, field)
    assert [link["id"] for link in (await booked.client.get("/v1/links")).json()] == ["L1"]


async def test_bad_windows(booked: Service) -> None:
    good = {"begin": at(10), "end": at(20)}
    for change, field in (
        ({"end": at(10)}, "end"),
        ({"begin": at(-20), "end": at(-10)}, "end"),
        ({"begin": "2026-01-01T00:00:00"}, "begin"),
        ({"bps": -1}, "bps"),
        ({"kind": "holiday"}, "kind"),
        ({"on_broken": "shrug"}, "on_broken"),
        ({"reason": "\0"}, "reason"),
    ):
        problem(await booked.client.post("/v1/links/L1/windows", json={**good, **change}), 422, "invalid", field)
    problem(await booked.client.post("/v1/links/L7/windows", json=good), 404, "not-found")
    problem(await booked.client.delete("/v1/links/L1/windows/win_none"), 404, "not-found")


async def test_bad_queries(booked: Service) -> None:
    for path, field in (
        ("/v1/transfers?limit=0", "limit"),
        ("/v1/transfers?limit=many", "limit"),
        ("/v1/transfers?state=LOST", "state.0"),
        ("/v1/transfers?cursor=%00", "cursor"),
        ("/v1/transfers?cursor=bm8", "cursor"),
        ("/v1/transfers?project=%00", "project"),
        ("/v1/transfers?search=%00", "search"),
        ("/v1/audit-log?cursor=zzzz", "cursor"),
        ("/v1/links/L1/calendar?from=now", "from"),
        ("/v1/links/L1/calendar?from=2026-01-01T00:00:00", "from"),
        ("/v1/links/L1/calendar?from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("/v1/links/L1/calendar?points=1", "points"),
    ):
        problem(await booked.client.get(path), 422, "invalid", field)
    problem(await booked.client.get("/v1/events", headers={"Last-Event-ID": "x"}), 422, "invalid", "Last-Event-ID")


@pytest.mark.parametrize("name", ["none", "%00", "%ed%a0%80", "..%2f..", "x" * 3000, "tr_%F0%9F%98%80"])
async def test_names_that_are_nothing(name: str, booked: Service) -> None:
    client = booked.client
    for path in (
        f"/v1/transfers/{name}", f"/v1/transfers/{name}/events", f"/v1/transfers/{name}/measurements", f"/v1/links/{name}",
        f"/v1/links/{name}/calendar", f"/v1/hosts/{name}", f"/v1/{name}",
    ):  # fmt: skip
        problem(await client.get(path), 404, "not-found")
    for action in ("commit", "cancel", "pause", "resume"):
        problem(await client.post(f"/v1/transfers/{name}/{action}"), 404, "not-found")
    problem(await client.patch(f"/v1/transfers/{name}", json={"priority": 1}), 404, "not-found")
    problem(await client.patch(f"/v1/links/{name}", json={"metric": 1}), 404, "not-found")
    problem(await client.patch(f"/v1/hosts/{name}", json={"drained": True}), 404, "not-found")
    problem(await client.delete(f"/v1/links/{name}"), 404, "not-found")
    problem(await client.delete(f"/v1/links/L1/windows/{name}"), 404, "not-found")
    problem(await client.delete(f"/v1/tokens/{name}"), 404, "not-found")
    problem(await client.post(f"/v1/links/{name}/windows", json={"begin": at(1), "end": at(2)}), 404, "not-found")


async def test_changes_that_make_no_sense(service: Service) -> None:
    await service.link()
    transfer = await service.book()
    path = f"/v1/transfers/{transfer['id']}"
    for change, field in (
        ({"volume_bytes": None}, "volume_bytes"),
        ({"priority": None}, "priority"),
        ({"planner": None}, "planner"),
        ({"volume_bytes": 0}, "volume_bytes"),
        ({"deadline": at(-1)}, "deadline"),
        ({"rate_min_bps": 10, "rate_max_bps": 9}, "rate_min_bps"),
        ({"paths": 0}, "paths"),
        ({"path": []}, "path"),
        ({"path": ["L1"], "split": True}, "split"),
        ({"most_segments": 0}, "most_segments"),
        ({"shortest_segment_s": 1e-9}, "shortest_segment_s"),
        ({"best_effort": None}, "best_effort"),
        ({"preempt": True}, "preempt"),
        ({"state": "FINISHED"}, "state"),
        ({"source": "B"}, "source"),
    ):
        problem(await service.client.patch(path, json=change), 422, "invalid", field)
    problem(await service.client.patch(path, json={"planner": "none"}), 422, "unknown-planner", "planner")
    assert (await service.client.get(path)).json() == transfer
    await service.client.post(path + "/cancel")
    problem(await service.client.patch(path, json={"priority": 1}), 409, "conflict")
    for action in ("commit", "pause", "resume"):
        problem(await service.client.post(f"{path}/{action}"), 409, "conflict")
