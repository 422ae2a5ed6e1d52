# SPDX-License-Identifier: Apache-2.0
"""Identifies the caller: by the bearer token of a program, or by the session cookie of a browser.

A browser sends its cookie with whatever a page makes it send, other people's pages included. SameSite=Strict holds that back; besides, what
changes anything must carry a header that no foreign page can add without asking (CORS, which this broker does not grant), and come from our
own origin wherever the browser says whence it comes.
"""

from urllib.parse import urlsplit

from fastapi import Request, Response

from broker.core.units import US_PER_S
from broker.desk.ground.problems import Problem
from broker.fleet.sessions import Sessions, SignedIn
from broker.fleet.tokens import Principal

CSRF_HEADER = "X-BWB-CSRF"
SESSION_COOKIE = "bwb_session"
_SECURE_COOKIE = "__Host-bwb_session"  # which no other host and no plain http can set

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


# In the scope of a request: the caller that the door has recognised. A long-lived stream checks it again.
RECOGNISED = "bwb.principal"


async def caller(request: Request) -> Principal:
    """Raises Problem `unauthorized`, or `csrf` where a cookie alone does not do."""
    if "authorization" in request.headers or cookie_secret(request) is None:
        principal: Principal = await request.app.state.broker.access.principal(bearer(request))
        return principal
    return (await signed_in(request)).principal


async def signed_in(request: Request) -> SignedIn:
    """The session of a browser. Raises like `caller`."""
    secret = cookie_secret(request)
    if secret is None:
        raise Problem("unauthorized", "there is no session; sign in with a token")
    sessions: Sessions = request.app.state.broker.sessions
    found = await sessions.recognise(secret)
    if request.method not in _SAFE:
        if request.headers.get(CSRF_HEADER) != "1":
            raise Problem("csrf", f"what changes anything by a session cookie needs the header {CSRF_HEADER}: 1")
        check_origin(request)
    return found


def bearer(request: Request) -> str:
    """The token of the Authorization header; empty where there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Problem("unauthorized", "send a token: Authorization: Bearer bwb_...")
    return token.strip()


def check_origin(request: Request) -> None:
    """Raises Problem `csrf` where the browser says that another site's page sent this."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    if site != "same-origin" or (origin is not None and origin not in _origins(request)):
        raise Problem(
            "csrf",
            f"this came from another origin ({(origin or site)[:100]}); behind a proxy set BWB_PUBLIC_URL to the address people use",
        )


def _origins(request: Request) -> set[str]:
    public = urlsplit(_public_url(request))
    return {f"{request.url.scheme}://{request.url.netloc}", f"{public.scheme}://{public.netloc}"}


def _public_url(request: Request) -> str:
    return str(request.app.state.settings.public_url)


def _secure(request: Request) -> bool:
    return request.url.scheme == "https" or _public_url(request).startswith("https://")


def cookie_secret(request: Request) -> str | None:
    """The secret of the session cookie; None where there is none."""
    return request.cookies.get(_SECURE_COOKIE if _secure(request) else SESSION_COOKIE)


def set_cookie(request: Request, answer: Response, secret: str, lasts_us: int) -> None:
    """Have the browser keep a session's secret."""
    secure = _secure(request)
    name = _SECURE_COOKIE if secure else SESSION_COOKIE
    answer.set_cookie(name, secret, max_age=lasts_us // US_PER_S, path="/", secure=secure, httponly=True, samesite="strict")


def clear_cookie(request: Request, answer: Response) -> None:
    """Have the browser forget a session's secret."""
    secure = _secure(request)
    answer.delete_cookie(_SECURE_COOKIE if secure else SESSION_COOKIE, path="/", secure=secure, httponly=True, samesite="strict")
