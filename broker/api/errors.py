# SPDX-License-Identifier: Apache-2.0
"""Every error leaves as application/problem+json, with the field where there is one."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from broker.api.faults import Faults
from broker.api.render import problem_answer
from broker.api.statuses import status_of
from broker.desk.ground.problems import Problem
from broker.store.session import DatabaseAway

_MAX_ERRORS = 20
_BY_STATUS = {
    400: "malformed",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    401: "unauthorized",
    403: "forbidden",
}


def install(app: FastAPI) -> None:
    """Have every refusal and fault answered as problem+json."""
    app.add_middleware(Faults)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(DatabaseAway, _on_away)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


_HEADERS: dict[int, Callable[[Problem], dict[str, str]]] = {
    401: lambda _: {"WWW-Authenticate": "Bearer"},
    415: lambda _: {"Accept": "application/json"},
    429: lambda problem: {"Retry-After": str(problem.more["retry_after_s"]), **_rate_limit(problem)},
    503: lambda problem: {"Retry-After": str(problem.more.get("retry_after_s", 1))},
}


def _rate_limit(problem: Problem) -> dict[str, str]:
    """As in draft-ietf-httpapi-ratelimit-headers: what the limit is, and how much of it is left."""
    limit = problem.more.get("limit")
    if not isinstance(limit, dict) or "within_s" not in limit:
        return {}
    policy = f'"{limit["name"]}"'
    return {
        "RateLimit-Policy": f"{policy};q={limit['requests']};w={limit['within_s']}",
        "RateLimit": f"{policy};r=0;t={problem.more['retry_after_s']}",
    }


def refusal(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A Problem as an answer."""
    status = status_of(problem)
    own = _HEADERS[status](problem) if status in _HEADERS else {}
    return problem_answer(problem, own | (headers or {}))


async def _on_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return refusal(problem)


async def _on_away(_: Request, away: Exception) -> Response:
    return away_answer(away)


def away_answer(away: Exception) -> Response:
    """503 with Retry-After: the database is away."""
    problem = Problem(
        "unavailable", f"the database cannot be reached just now ({away}); nothing was changed that you were not told of"
    )
    return problem_answer(problem, {"Retry-After": "1"})


async def _on_invalid(_: Request, invalid: Exception) -> Response:
    assert isinstance(invalid, RequestValidationError)
    found = invalid.errors()
    if any(error["type"] == "json_invalid" for error in found):
        return problem_answer(Problem("malformed", f"the body is not JSON: {found[0].get('ctx', {}).get('error', '')}"))
    errors = [{"field": _field(error["loc"]), "detail": str(error["msg"])} for error in found[:_MAX_ERRORS]]
    detail = "; ".join(f"{error['field']}: {error['detail']}" for error in errors[:3])
    more = {"errors": errors} | ({"errors_total": len(found)} if len(found) > _MAX_ERRORS else {})
    return problem_answer(Problem("invalid", detail, more))


def _field(location: tuple[Any, ...]) -> str:
    """("body", "asks", 3, "source") -> asks.3.source"""
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] in ("body", "query", "path", "header"):
        parts = parts[1:]
    return ".".join(parts)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _BY_STATUS.get(error.status_code, "malformed" if error.status_code < 500 else "unavailable")
    problem = Problem(code, str(error.detail))
    headers = {"Allow": _allowed(request)} if code == "method-not-allowed" else dict(error.headers or {})
    return problem_answer(problem, headers)


def _allowed(request: Request) -> str:
    """Every method that the path has; the framework names those of its first route alone."""
    routes = [route for route in request.app.router.routes if isinstance(route, Route)]
    found = [route.methods or set() for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted(set().union(*found)))
