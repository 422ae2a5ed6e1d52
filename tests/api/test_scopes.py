# SPDX-License-Identifier: Apache-2.0
"""Every route, those outside the contract too, against every scope: a new one must be entered here before the tests pass."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
from fastapi import FastAPI

from broker.fleet.tokens import IMPLIED, Scope
from tests.api.problems import problem
from tests.service import Service, client_of

PUBLIC = {"GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /docs"}
PUBLIC |= {"GET /v1/agents/install.sh", "GET /v1/agents/download/{platform}", "GET /v1/agents/download/{platform}.sha256"}
IN_THE_BODY = {"POST /v1/agents/enrol", "POST /v1/session"}  # the token is in the body

NEEDS = {
    "GET /v1/overview": Scope.READ,
    "GET /v1/schedule": Scope.READ,
    "GET /v1/planners": Scope.READ,
    "GET /v1/links/{link_id}/bookings": Scope.READ,
    "GET /v1/network/load": Scope.READ,
    "POST /v1/transfers": Scope.SUBMIT,
    "POST /v1/transfers/batch": Scope.SUBMIT,
    "POST /v1/quotes": Scope.READ,
    "GET /v1/transfers": Scope.READ,
    "GET /v1/transfers/{transfer_id}": Scope.READ,
    "PATCH /v1/transfers/{transfer_id}": Scope.SUBMIT,
    "POST /v1/transfers/{transfer_id}/commit": Scope.SUBMIT,
    "POST /v1/transfers/{transfer_id}/cancel": Scope.SUBMIT,
    "POST /v1/transfers/{transfer_id}/pause": Scope.SUBMIT,
    "POST /v1/transfers/{transfer_id}/resume": Scope.SUBMIT,
    "GET /v1/transfers/{transfer_id}/events": Scope.READ,
    "GET /v1/transfers/{transfer_id}/measurements": Scope.READ,
    "GET /v1/links": Scope.READ,
    "POST /v1/links": Scope.OPERATE,
    "GET /v1/links/{link_id}": Scope.READ,
    "PATCH /v1/links/{link_id}": Scope.OPERATE,
    "DELETE /v1/links/{link_id}": Scope.OPERATE,
    "GET /v1/links/{link_id}/calendar": Scope.READ,
    "POST /v1/links/{link_id}/windows": Scope.OPERATE,
    "DELETE /v1/links/{link_id}/windows/{window_id}": Scope.OPERATE,
    "GET /v1/topology": Scope.READ,
    "PUT /v1/topology": Scope.OPERATE,
    "POST /v1/plans": Scope.OPERATE,
    "GET /v1/plans": Scope.READ,
    "GET /v1/plans/{job_id}": Scope.READ,
    "POST /v1/plans/{job_id}/cancel": Scope.OPERATE,
    "POST /v1/plans/{job_id}/apply": Scope.OPERATE,
    "POST /v1/simulations": Scope.SUBMIT,
    "GET /v1/simulations": Scope.READ,
    "GET /v1/simulations/{job_id}": Scope.READ,
    "GET /v1/simulations/{job_id}/plot.png": Scope.READ,
    "POST /v1/simulations/{job_id}/cancel": Scope.SUBMIT,
    "GET /v1/hosts": Scope.READ,
    "GET /v1/hosts/{host}": Scope.READ,
    "PATCH /v1/hosts/{host}": Scope.OPERATE,
    "DELETE /v1/hosts/{host}": Scope.OPERATE,
    "POST /v1/hosts/enrolment-tokens": Scope.OPERATE,
    "GET /v1/hosts/enrolment-tokens": Scope.OPERATE,
    "DELETE /v1/hosts/enrolment-tokens/{token_id}": Scope.OPERATE,
    "GET /v1/agents/{host}/assignments": Scope.AGENT,
    "GET /v1/agents/{host}/stream": Scope.AGENT,
    "POST /v1/agents/{host}/reports": Scope.AGENT,
    "GET /v1/session": Scope.READ,
    "DELETE /v1/session": Scope.READ,
    "GET /v1/tokens": Scope.ADMIN,
    "GET /v1/tokens/{token_id}": Scope.ADMIN,
    "PATCH /v1/tokens/{token_id}": Scope.ADMIN,
    "POST /v1/tokens": Scope.ADMIN,
    "DELETE /v1/tokens/{token_id}": Scope.ADMIN,
    "GET /v1/events": Scope.READ,
    "GET /v1/audit-log": Scope.OPERATE,
    "GET /v1/audit": Scope.OPERATE,
}
STREAMS = {"GET /v1/events", "GET /v1/agents/{host}/stream"}
GIVEN: dict[str, Any] = {"source": "A", "destination": "B", "volume_bytes": 1}
BODIES: dict[str, Any] = {
    "POST /v1/transfers": GIVEN,
    "POST /v1/transfers/batch": [GIVEN],
    "POST /v1/quotes": GIVEN,
    "POST /v1/links": {"id": "L", "source": "A", "target": "B", "capacity_bps": 1},
    "POST /v1/links/{link_id}/windows": {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
    "PUT /v1/topology": {"links": [], "prune": False},
    "PATCH /v1/hosts/{host}": {"drained": False},
    "POST /v1/hosts/enrolment-tokens": {"host": "h", "node": "A", "nic_bps": 1},
    "POST /v1/tokens": {"name": "x", "scopes": ["read"]},
    "POST /v1/plans": {"time_limit_s": 1},
    "POST /v1/simulations": {"load": 0.5},
}


def routes(app: FastAPI) -> Iterator[str]:
    for path, methods in app.openapi()["paths"].items():
        yield from (f"{method.upper()} {path}" for method in methods)


def every_route(found: Any) -> Iterator[Any]:
    """What Starlette would match, whether or not the OpenAPI document shows it."""
    for route in found:
        inner = getattr(route, "original_router", None)
        yield from every_route(inner.routes) if inner is not None else [route]


async def test_every_route_is_in_the_table(service: Service) -> None:
    described = set(routes(service.app))
    matched = {f"{method} {r.path}" for r in every_route(service.app.routes) for method in r.methods or () if method != "HEAD"}
    assert matched == set(NEEDS) | PUBLIC | IN_THE_BODY
    assert described | {"GET /openapi.json", "GET /docs"} == matched


async def test_every_route_asks_for_its_scope_and_no_more(service: Service) -> None:
    await service.link()
    await service.enrol("h1", "A")
    clients: dict[Scope, httpx.AsyncClient] = {
        scope: service.as_token(await service.token(scope)) for scope in Scope if scope is not Scope.AGENT
    }
    clients[Scope.AGENT] = service.as_token(await service.token(Scope.AGENT, host="h1"))
    stranger = service.as_token(await service.token(Scope.AGENT, host="h2"))
    for name, needed in NEEDS.items():
        method, template = name.split(" ")
        # Removing the host of the agent's token would end the token.
        host = "none" if name == "DELETE /v1/hosts/{host}" else "h1"
        path = re.sub(r"\{\w+\}", "none", template.replace("{host}", host))
        body = BODIES.get(name, {}) if method in ("POST", "PATCH", "PUT") else None
        for held, client in clients.items():
            if needed in IMPLIED[held]:
                if name not in STREAMS:  # these would not end
                    answer = await client.request(method, path, json=body)
                    assert answer.status_code not in (401, 403) and answer.status_code < 500, (name, held, answer.text)
            else:
                answer = await client.request(method, path, json=body)
                # A body is looked at only when the caller may send it.
                assert answer.status_code == 403 or (answer.status_code == 422 and body == {}), (name, held, answer.status_code)
                problem(answer, answer.status_code)
        problem(await client_of(service.app, "").request(method, path, json=body), 401, "unauthorized")
        if needed is Scope.AGENT:
            problem(await stranger.request(method, path, json=body), 403, "forbidden")
