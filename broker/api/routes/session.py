# SPDX-License-Identifier: Apache-2.0
"""/v1/session: people sign in to the dashboard with a token, and out."""

from fastapi import Request, Response

from broker.api import render
from broker.api.addresses import address_of
from broker.api.callers import check_origin, clear_cookie, cookie_secret, set_cookie, signed_in
from broker.api.context import BrokerDependency, Reader
from broker.api.contract.parts import OPEN
from broker.api.operator_schemas import SessionBody, SessionOut
from broker.api.routing import make_router
from broker.core.units import format_time
from broker.desk.ground.problems import Problem
from broker.fleet.tokens import Principal

router = make_router("session", "/v1/session")


@router.post("", operation_id="signIn", status_code=201, response_model=SessionOut, openapi_extra=OPEN)
async def sign_in(body: SessionBody, request: Request, broker: BrokerDependency) -> Response:
    """Trade a token for a session: the answer sets a cookie that replaces the token and that scripts cannot read.

    By cookie, whatever changes anything needs the header `X-BWB-CSRF: 1`.
    """
    check_origin(request)
    address = address_of(request.scope)
    broker.attempts.take(address, body.token)
    try:
        opened, secret = await broker.sessions.open(body.token)
    except Problem as problem:
        broker.attempts.failed(address, problem.code)
        raise
    broker.attempts.succeeded(address, body.token)
    broker.wakeups.announce(())
    answer = render.answer(_shown(opened.principal, opened.expires_us), 201, {"Cache-Control": "no-store"})
    set_cookie(request, answer, secret, opened.expires_us - opened.session.created_us)
    return answer


@router.get("", operation_id="getSession", response_model=SessionOut)
async def show(request: Request, caller: Reader) -> Response:
    """The caller and its scopes."""
    by_cookie = "authorization" not in request.headers and cookie_secret(request) is not None
    expires_us = (await signed_in(request)).expires_us if by_cookie else None
    return render.answer(_shown(caller, expires_us), headers={"Cache-Control": "no-store"})


@router.delete("", operation_id="signOut", status_code=204, response_class=Response, responses={404: {}})
async def sign_out(request: Request, broker: BrokerDependency, _: Reader) -> Response:
    """End the session."""
    if cookie_secret(request) is None:
        raise Problem("not-found", "this caller has a token and no session")
    found = await signed_in(request)
    await broker.sessions.close(found.session)
    broker.wakeups.announce(())
    answer = Response(status_code=204)
    clear_cookie(request, answer)
    return answer


def _shown(principal: Principal, expires_us: int | None) -> render.Json:
    return {
        "id": principal.id,
        "name": principal.name,
        "scopes": sorted(principal.scopes),
        "expires": None if expires_us is None else format_time(expires_us),
    }
