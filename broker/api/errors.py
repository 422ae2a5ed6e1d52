# SPDX-License-Identifier: Apache-2.0
"""Every error leaves as application/problem+json, with the field where there is one; and bodies are bounded before they are read."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api.faults import Faults
from broker.api.render import problem_answer
from broker.desk.problems import Problem
from broker.store.session import DatabaseAway

_MOST_ERRORS = 20
_BY_STATUS = {
    400: "malformed",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    401: "unauthorized",
    403: "forbidden",
}


def install(app: FastAPI, body_limit: int) -> None:
    app.add_middleware(BodyLimit, limit=body_limit)
    app.add_middleware(Faults)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(DatabaseAway, _on_away)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


_HEADERS: dict[int, Callable[[Problem], dict[str, str]]] = {
    401: lambda _: {"WWW-Authenticate": "Bearer"},
    429: lambda problem: {"Retry-After": str(problem.more["retry_after_s"])},
    503: lambda problem: {"Retry-After": str(problem.more.get("retry_after_s", 1))},
}


async def _on_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return problem_answer(problem, _HEADERS[problem.status](problem) if problem.status in _HEADERS else None)


async def _on_away(_: Request, away: Exception) -> Response:
    problem = Problem(
        "unavailable", f"the database cannot be reached just now ({away}); nothing was changed that you were not told of"
    )
    return problem_answer(problem, {"Retry-After": "1"})


async def _on_invalid(_: Request, invalid: Exception) -> Response:
    assert isinstance(invalid, RequestValidationError)
    found = invalid.errors()
    if any(error["type"] == "json_invalid" for error in found):
        return problem_answer(Problem("malformed", f"the body is not JSON: {found[0].get('ctx', {}).get('error', '')}"))
    errors = [{"field": _field(error["loc"]), "detail": str(error["msg"])} for error in found[:_MOST_ERRORS]]
    detail = "; ".join(f"{error['field']}: {error['detail']}" for error in errors[:3])
    return problem_answer(Problem("invalid", detail, {"errors": errors}))


def _field(location: tuple[Any, ...]) -> str:
    """("body", "asks", 3, "source") -> asks.3.source"""
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] in ("body", "query", "path", "header"):
        parts = parts[1:]
    return ".".join(parts)


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, _TooLarge):
        return _too_large(error)
    code = _BY_STATUS.get(error.status_code, "malformed" if error.status_code < 500 else "unavailable")
    problem = Problem(code, str(error.detail))
    return problem_answer(problem, dict(error.headers) if error.headers else None)


class _TooLarge(HTTPException):
    """An HTTPException, because FastAPI answers any other fault while it reads a body with 400."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the body is larger than {limit} bytes; send several smaller requests")
        self.limit = limit


class BodyLimit:
    """Refuses bodies above `limit` bytes: by Content-Length before a byte is read, else as soon as too many have come."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value[:20]) > self.limit):
                await self._refuse(scope, receive, send)
                return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > self.limit:
                    raise _TooLarge(self.limit)
            return message

        await self.app(scope, counted, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _too_large(_TooLarge(self.limit))(scope, receive, send)


def _too_large(error: _TooLarge) -> Response:
    return problem_answer(Problem("too-large", str(error.detail), {"limit_bytes": error.limit}), {"Connection": "close"})
