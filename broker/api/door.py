# SPDX-License-Identifier: Apache-2.0
"""Admits a request before anything but its header is read.

FastAPI reads and parses a body first and asks for the token afterwards. Here a token that is wrong costs its sender his own share of look-ups,
and nobody else's time. Whoever is known is limited by his token, whoever is not by his address; so nobody is held up by a neighbour behind the
same proxy who tries tokens out. Who asks too often gets his refusal a little later: it costs him the time, and not us the next request.
"""

import asyncio
from dataclasses import dataclass

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api.addresses import address_of, neighbourhood
from broker.api.callers import RECOGNISED, bearer, caller, cookie_secret
from broker.api.context import Broker
from broker.api.errors import away_answer, refusal
from broker.api.rates import Buckets
from broker.api.statuses import status_of
from broker.desk.ground.problems import Problem
from broker.settings import Settings
from broker.store.session import DatabaseAway

# What brings its secret in the body.
_OPEN = frozenset({("POST", "/v1/session"), ("POST", "/v1/agents/enrol")})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_VISITORS_AT_ONCE = 4
_HELD_S = 1.0
_SWALLOWED = 64 * 1024  # a body that was refused is read to its end if it is small; else the connection ends


@dataclass(slots=True)
class Rates:
    """How many requests callers may make."""

    tokens: Buckets  # of callers that are known
    visitors: Buckets  # of addresses, for what needs no token
    strangers: Buckets  # by address, for requests with an unknown token or cookie

    @classmethod
    def of(cls, s: Settings) -> "Rates":
        """The rates that the settings say."""
        return cls(
            Buckets("token", s.token_rate, s.token_burst),
            Buckets("address", s.address_rate, s.address_burst),
            Buckets("address with unknown tokens", s.unknown_rate, s.unknown_burst),
        )


class Door:
    """Knows the caller, and bounds how much callers ask, before anything else is done for a request."""

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self.app = app
        self.rates = rates
        self._working = asyncio.Semaphore(_VISITORS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            await self._check(request)
        except Problem as problem:
            if status_of(problem) == 429:
                await asyncio.sleep(_HELD_S)
            answer = refusal(problem, {"Connection": "close"} if _long_body(request) else {})
        except DatabaseAway as away:
            answer = away_answer(away)
        else:
            if RECOGNISED in scope or scope["method"] not in _SAFE:
                await self.app(scope, receive, send)
            else:
                await self._one_of_few(scope, receive, send)
            return
        await answer(scope, receive, send)

    async def _one_of_few(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let few of those without a token be worked on at once: a thousand that come together would each take a turn of the loop between any
        two steps of everybody else. What is left after the answer has begun is to write it, and waits for its reader.
        """
        await self._working.acquire()
        works = True

        async def sent(message: Message) -> None:
            nonlocal works
            if works:
                works = False
                self._working.release()
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            if works:
                self._working.release()

    async def _check(self, request: Request) -> None:
        address = neighbourhood(address_of(request.scope))
        if (request.method, request.url.path) in _OPEN or not _has_credentials(request):
            self.rates.visitors.take(address)
            if request.method not in _SAFE and _is_api(request) and (request.method, request.url.path) not in _OPEN:
                bearer(request)  # raises: there is none
            return
        if not _is_api(request):  # a page's own files come with a cookie, and need none
            self.rates.visitors.take(address)
            return
        remembered = _remembered(request)
        if not remembered:
            self.rates.strangers.take(address)
        try:
            principal = await caller(request)
        except DatabaseAway:
            if not remembered:
                self.rates.strangers.give_back(address)  # the database is away, so the caller cannot be identified: do not count it
            raise
        if not remembered:
            self.rates.strangers.give_back(address)
        self.rates.tokens.take(principal.id)
        request.scope[RECOGNISED] = principal


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/v1/")


def _has_credentials(request: Request) -> bool:
    return "authorization" in request.headers or cookie_secret(request) is not None


def _remembered(request: Request) -> bool:
    """Is the token or the cookie one that was good before?"""
    broker: Broker = request.app.state.broker
    if "authorization" in request.headers:
        return broker.access.remembers(bearer(request))
    return broker.sessions.remembers(cookie_secret(request) or "")


def _long_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return "transfer-encoding" in request.headers or not length.isdigit() or int(length[:20]) > _SWALLOWED
