# SPDX-License-Identifier: Apache-2.0
"""A token that takes all that it can get: of the links, as far ahead as they go, and of the queue of jobs."""

import http.client
import json
import time
from collections import Counter
from typing import Any

import pytest

from tests.abuse.stage import Stage, attack_with

pytestmark = pytest.mark.real_time

ATTACK_S = 4.0
MAX_OPEN = 200
TERABYTE = {"source": "A", "destination": "B", "volume_bytes": 10**12}
NETWORK = {"links": [{"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}]}
SIMULATION = {"requests": 100, "load": 0.8, "planners": ["vbls"], "network": NETWORK}


class Caller:
    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None


def submitter(stage: Stage, **limits: int) -> str:
    body = {"name": "greedy", "scopes": ["submit"], "limits": limits}
    token: str = stage.up.admin("POST", "/v1/tokens", body).json()["token"]
    return token


def book_everything(port: int, token: str) -> dict[str, int]:
    """Ask for it again and again; what came of it, by the code of the refusal. Gives it all back in the end."""
    call, codes, booked = Caller(port, token), Counter[str](), []
    until = time.monotonic() + ATTACK_S
    while time.monotonic() < until:
        items = call("POST", "/v1/transfers/batch", [TERABYTE] * 100)[1]["items"]
        for item in items:
            codes["booked" if item["status"] == 201 else item["problem"]["type"].rsplit("/", 1)[-1]] += 1
            if item["status"] == 201:
                booked.append(item["transfer"]["id"])
    for transfer_id in booked:
        call("POST", f"/v1/transfers/{transfer_id}/cancel")
    return dict(codes)


def simulate(port: int, token: str, count: int) -> dict[str, int]:
    call, statuses = Caller(port, token), Counter[str]()
    queued = []
    for _ in range(count):
        status, job = call("POST", "/v1/simulations", SIMULATION)
        statuses[str(status)] += 1
        if status == 202:
            queued.append(job["id"])
    time.sleep(1)
    for job_id in queued:
        call("POST", f"/v1/simulations/{job_id}/cancel")
    return dict(statuses)


def test_everything_ahead(stage: Stage) -> None:
    """200 TB of a 100 Gb/s link are booked and given back, and some ten thousand more refused."""
    token = submitter(stage, open_transfers=MAX_OPEN)
    figures = stage.beside("all of a link booked ahead", lambda: attack_with(book_everything, stage.port, token))
    (codes,) = figures["answer"]
    assert codes["booked"] <= MAX_OPEN and set(codes) == {"booked", "limit-exceeded"}


def test_a_hundred_simulations(stage: Stage) -> None:
    """101 of them turned the operator's plan away."""
    token = submitter(stage)
    plans = []

    def attack() -> list[Any]:
        answers = attack_with(simulate, stage.port, token, 101)
        plans.append(stage.up.admin("POST", "/v1/plans", {}))
        return answers

    figures = stage.beside("101 simulations", attack)
    (statuses,) = figures["answer"]
    assert statuses["409"] >= 101 - 8, "four at once; some may have ended meanwhile"
    assert [plan.status_code for plan in plans] == [202] * len(plans)
