# SPDX-License-Identifier: Apache-2.0
"""The whole API against its own contract: schemathesis makes up requests from it, good ones and bad ones, and judges every answer."""

import asyncio
import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.result import Ok

from broker.api.statuses import STATUS
from broker.desk.ground.problems import TYPE_PREFIX
from broker.fleet import tokens
from broker.fleet.tokens import Scope
from broker.main import create_app
from broker.settings import Settings
from broker.store.session import Database
from tests.core.grid import EFFORT_PERCENT
from tests.postgres import Server
from tests.service import SECRET, Clock, Service, checked

STREAMS = ("/v1/events", "/v1/agents/{host}/stream")  # they never end
AGENT = "/v1/agents/{host}/"
CASES = max(40 * EFFORT_PERCENT // 100, 12)  # of each operation
JUDGED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
# Declared headers that may be missing: a preview and a table have no revision, and a limit of streams is no rate.
SOMETIMES = {"etag", "ratelimit", "ratelimit-policy"}
PROMISED = {"etag", "location", "retry-after", "allow"}  # headers that are never there without being declared


def test_problem_types_are_stable() -> None:
    """Clients compare these strings. Add to the list; never change a line."""
    assert TYPE_PREFIX == "https://bandwidth-broker.invalid/problems/"
    assert {
        "infeasible": 409, "no-path": 409, "unsupported": 422, "invalid": 422, "unknown-node": 422, "unknown-planner": 422,
        "not-found": 404, "conflict": 409, "exists": 409, "breaks-promises": 409, "idempotency-key-reused": 422,
        "precondition-failed": 412, "unauthorized": 401, "forbidden": 403, "csrf": 403, "too-many-attempts": 429, "too-large": 413, "malformed": 400,
        "method-not-allowed": 405, "unavailable": 503,
    }.items() <= STATUS.items()  # fmt: skip


@contextlib.contextmanager
def served(database_url: str) -> Iterator[str]:
    """The application under uvicorn, in a thread: an ASGI transport has neither streams nor chunked bodies as they are on a wire."""
    app = create_app(Settings(database_url=database_url, secret_key=SECRET))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # so that nobody is refused while the server starts
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


async def _prepare(database_url: str) -> tuple[str, str]:
    """Tokens: one with every scope, one of the agent of host h1."""
    database = Database(database_url, pool_size=2)
    now = 1_767_225_600_000_000
    every = (Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN)
    _, all_scopes = await tokens.create(database, now, name="all", scopes=every, actor="test")
    _, agent = await tokens.create(database, now, name="agent h1", scopes=(Scope.AGENT,), actor="test", host="h1")
    await database.close()
    return all_scopes, agent


@pytest.mark.slow
def test_the_api_keeps_its_contract(postgres: Server) -> None:
    load_all_checks()
    url = postgres.new_database()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        all_scopes, agent = runner.run(_prepare(url))
    with served(url) as base:
        admin = httpx.Client(base_url=base, headers={"Authorization": f"Bearer {all_scopes}"})
        checked(admin.post("/v1/links", json={"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}), 201)
        body = {"host": "h1", "node": "A", "nic_bps": 10**9}
        enrolment = checked(admin.post("/v1/hosts/enrolment-tokens", json=body), 201)["token"]
        enrolled = checked(admin.post("/v1/agents/enrol", json={"token": enrolment, "data_address": "127.0.0.1:7411"}), 201)
        agent = enrolled["agent_token"]
        transfer = checked(admin.post("/v1/transfers", json={"source": "A", "destination": "B", "volume_bytes": 10**15}), 201)["id"]
        known = {"transfer_id": transfer, "link_id": "L1", "host": "h1"}
        document = checked(admin.get("/openapi.json", timeout=60))
        schema = schemathesis.openapi.from_dict(document)
        schema.config.update(base_url=base)
        faults = []
        calls: Counter[int] = Counter()
        for result in schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
            if operation.path in STREAMS:
                continue
            try:
                fuzz(operation, document, agent if operation.path.startswith(AGENT) else all_scopes, known, calls)
            except Exception as fault:
                faults.append(f"{operation.method.upper()} {operation.path}: {str(fault)[:1500]}")
        print(f"{calls.total()} calls: {dict(calls)}")
        assert not faults, "\n\n".join(faults)
        # Good and bad ones both got through to what they are for; which of them shifts with every change of the contract.
        good = sum(number for status, number in calls.items() if status < 300)
        assert calls.total() > 12 * CASES and good > 3 * CASES and calls[201] > 0 and calls[422] > 3 * CASES
        assert checked(admin.get("/v1/audit"))["clean"]
        admin.close()


def declared_headers(document: dict[str, Any], operation: schemathesis.APIOperation[Any, Any, Any, Any], status: int) -> set[str]:
    response = document["paths"][operation.path][operation.method]["responses"][str(status)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return {name.lower() for name in response["headers"]}


def fuzz(
    operation: schemathesis.APIOperation[Any, Any, Any, Any],
    document: dict[str, Any],
    token: str,
    known: dict[str, str],
    calls: Counter[int],
) -> None:
    """Good and bad requests to one operation; half of them to something that is there."""
    good, bad = (operation.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE))
    checks: list[Any] = [CHECKS.get_one(name) for name in JUDGED]

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=good | bad, there=st.booleans())
    def one(case: schemathesis.Case[Any], there: bool) -> None:
        if there:
            case.path_parameters = {name: known.get(name, value) for name, value in (case.path_parameters or {}).items()}
        wait = (case.query or {}).get("wait")
        if isinstance(wait, int | float) and 0 < wait <= 60:  # nothing will change while it waits
            case.query["wait"] = 0.01
        response = case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=checks, timeout=20)
        calls[response.status_code] += 1
        headers, declared = set(response.headers), declared_headers(document, operation, response.status_code)
        assert declared - SOMETIMES <= headers and headers & PROMISED <= declared, (response.status_code, headers, declared)

    one()


async def test_streams_over_a_socket(service: Service, database_url: str, clock: Clock) -> None:
    """Both streams speak at once, tell of what happens, and end when the process does."""
    await service.link()
    token = service.client.headers["authorization"]
    agent = await service.enrol("h1", "A")
    with served(database_url) as base:
        async with httpx.AsyncClient(base_url=base, timeout=20) as client, asyncio.timeout(30):
            headers = {"Authorization": token}
            async with (
                client.stream("GET", "/v1/events", headers=headers) as events,
                client.stream(
                    "GET", "/v1/agents/h1/stream", headers={"Authorization": agent.headers["authorization"]}
                ) as revisions,
            ):
                assert events.headers["content-type"].startswith("text/event-stream")
                lines, pushes = events.aiter_lines(), revisions.aiter_lines()
                assert (await anext(lines)).startswith("id: ")
                first = await _data(pushes)
                ask = {"source": "h1", "destination": "B", "volume_bytes": 1000}
                made = (await client.post("/v1/transfers", json=ask, headers=headers)).json()
                assert (await _data(lines))["subject"] == made["id"]
                body = {"source": "B", "destination": "h1", "volume_bytes": 1000}
                assert (await client.post("/v1/transfers", json=body, headers=headers)).status_code == 409  # no way back
                again = await client.post(
                    "/v1/hosts/enrolment-tokens", json={"host": "h1", "node": "A", "nic_bps": 5}, headers=headers
                )
                enrolment = {"token": again.json()["token"], "data_address": "127.0.0.1:1"}
                assert (await client.post("/v1/agents/enrol", json=enrolment)).status_code == 201
                assert (await _data(pushes))["revision"] > first["revision"]


async def _data(lines: AsyncIterator[str]) -> Any:
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended")
