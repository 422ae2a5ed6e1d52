# SPDX-License-Identifier: Apache-2.0
"""Valid requests that take long to plan: beside each of them others book and read as before.

The attacker has a token of its own: callers take turns, and the normal client is another one.
"""

import http.client
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.abuse.stage import Stage, attack_with

pytestmark = pytest.mark.real_time

DEADLINE = "2099-01-01T00:00:00Z"
NODES = "ABCDEFGH"
LASTS_S = 4.0
_names = itertools.count()


@pytest.fixture(scope="module")
def mesh(stage: Stage) -> Iterator[Stage]:
    """A full mesh with much booked on it, beside the link of the normal client: many paths, and calendars with many steps."""
    nodes = [f"m{node}" for node in NODES]
    links = [{"id": f"{a}-{b}", "source": a, "target": b, "capacity_bps": 10**10} for a, b in itertools.permutations(nodes, 2)]
    for link in links:
        assert stage.up.admin("POST", "/v1/links", link).status_code == 201
    pairs = itertools.islice(itertools.cycle(itertools.permutations(nodes, 2)), 4000)
    asks = [
        {"source": a, "destination": b, "volume_bytes": 10**9 + n * 10**6, "rate_max_bps": 10**8 + n * 1000, "paths": 1}
        for n, (a, b) in enumerate(pairs)
    ]
    for begin in range(0, len(asks), 1000):
        assert stage.up.admin("POST", "/v1/transfers/batch", asks[begin : begin + 1000]).status_code == 200
    yield stage


def _token(stage: Stage, *scopes: str) -> str:
    made = stage.up.admin("POST", "/v1/tokens", {"name": f"attacker {next(_names)}", "scopes": list(scopes)})
    assert made.status_code == 201, made.text
    token: str = made.json()["token"]
    return token


def repeat(host: str, port: int, token: str, method: str, path: str, body: Any, lasts_s: float = LASTS_S) -> dict[str, int]:
    """The same request again and again; how often which status came."""
    data = json.dumps(body)
    statuses: dict[str, int] = {}
    end = time.monotonic() + lasts_s
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        try:
            connection.request(method, path, data, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            statuses[str(answer.status)] = statuses.get(str(answer.status), 0) + 1
        finally:
            connection.close()
    return statuses


def _repeat(stage: Stage, body: Any, path: str, processes: int = 1) -> Any:
    token = _token(stage, "read", "submit", "operate")
    return attack_with(repeat, stage.host, stage.port, token, "POST", path, body, processes=processes)


def _infeasible(**more: Any) -> dict[str, Any]:
    return {"source": "mA", "destination": "mB", "volume_bytes": 10**18, "deadline": DEADLINE, "paths": 16, **more}


def test_a_batch_of_5000_over_16_paths(mesh: Stage) -> None:
    ask = {"source": "mA", "destination": "mB", "volume_bytes": 10**9, "planner": "fbls", "paths": 16}
    batch = [ask | {"rate_max_bps": 10**9 + n} for n in range(5000)]
    mesh.beside("a batch of 5,000 fbls over 16 paths", lambda: _repeat(mesh, batch, "/v1/transfers/batch"))


def test_a_batch_of_1000_refusals(mesh: Stage) -> None:
    batch = [_infeasible(volume_bytes=10**18 - n) for n in range(1000)]
    mesh.beside("a batch of 1,000 refusals with offers", lambda: _repeat(mesh, batch, "/v1/transfers/batch"))


def test_infeasible_quotes_of_the_solver(mesh: Stage) -> None:
    body = _infeasible(planners=["optimal"])
    mesh.beside("infeasible quotes with optimal", lambda: _repeat(mesh, body, "/v1/quotes", 4))


def test_one_planner_twenty_times(mesh: Stage) -> None:
    body = _infeasible(planners=["optimal"] * 20)
    mesh.beside("20 times the same planner", lambda: _repeat(mesh, body, "/v1/quotes"))


def test_bookings_of_the_solver(mesh: Stage) -> None:
    body = {"source": "mA", "destination": "mB", "volume_bytes": 10**10, "deadline": DEADLINE, "paths": 16, "planner": "optimal"}
    mesh.beside("bookings with optimal", lambda: _repeat(mesh, body, "/v1/transfers", 2))


def test_quotes_on_100_000_steps_of_capacity(mesh: Stage) -> None:
    begin = 4_000_000_000
    steps = [
        {"from": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin + n)), "bps": 10**6 + n * 7919 % 99_991 * 1000}
        for n in range(100_000)
    ]
    link = {"id": "steps", "source": "sA", "target": "sB", "capacity_bps": 10**9, "available": steps}
    created = mesh.up.admin("POST", "/v1/links", link)
    assert created.status_code == 201, created.text[:500]
    deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin + 90_000))
    body = {"source": "sA", "destination": "sB", "volume_bytes": 10**15, "rate_max_bps": 5 * 10**7, "deadline": deadline,
            "not_before": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin)), "planners": ["*"]}  # fmt: skip
    try:
        mesh.beside("quotes on 100,000 steps of capacity", lambda: _repeat(mesh, body, "/v1/quotes"))
    finally:
        mesh.up.admin("DELETE", "/v1/links/steps")
