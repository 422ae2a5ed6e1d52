# SPDX-License-Identifier: Apache-2.0
"""/v1/tokens: for administrators."""

from collections.abc import Sequence

from fastapi import Response
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.api import render
from broker.api.context import Administrator, Broker, BrokerDependency, ExpectedRevision, etag
from broker.api.contract.parts import TAGGED
from broker.api.operator_schemas import NewTokenOut, TokenBody, TokenChangeBody, TokenInUse
from broker.api.routing import make_router
from broker.core.allowance import NOTHING
from broker.desk.ground.problems import Problem
from broker.fleet import tokens
from broker.store import access, jobs, token_use
from broker.store.access import Token

router = make_router("tokens", "/v1/tokens")


@router.get("", operation_id="listTokens", response_model=list[TokenInUse])
async def list_tokens(broker: BrokerDependency, _: Administrator) -> Response:
    """Every token, including revoked ones, without its secret."""
    async with broker.database.transaction() as connection:
        return render.answer(await _shown(broker, connection, await access.list_tokens(connection)))


@router.get("/{token_id}", operation_id="getToken", response_model=TokenInUse, responses={200: TAGGED})
async def show(token_id: str, broker: BrokerDependency, _: Administrator) -> Response:
    """One token, without its secret."""
    async with broker.database.transaction() as connection:
        found = None if "\0" in token_id else await access.token_by_id(connection, token_id)
        if found is None:
            raise Problem("not-found", f"there is no token {token_id[:64]!r}")
        (shown,) = await _shown(broker, connection, [found])
    return render.answer(shown, headers={"ETag": etag(found.revision)})


@router.patch("/{token_id}", operation_id="changeToken", response_model=TokenInUse, responses={200: TAGGED})
async def change(
    token_id: str, body: TokenChangeBody, broker: BrokerDependency, caller: Administrator, revision: ExpectedRevision
) -> Response:
    """Set limits; limits that are not named stay. Existing bookings stay as well: a lower limit applies to new ones."""
    if "\0" in token_id:
        raise Problem("not-found", "there is no such token")
    await tokens.change_limits(broker.database, broker.clock(), token_id, body.limits.given(), revision, caller.id)
    broker.access.forget()
    broker.sessions.forget()
    return await show(token_id, broker, caller)


async def _shown(broker: Broker, connection: AsyncConnection, found: Sequence[Token]) -> list[render.Json]:
    opened = await broker.sessions.count_open(connection, broker.clock())
    uses = await token_use.read_all(connection)
    queued = await jobs.count_open(connection)
    return [
        render.token(item)
        | {
            "sessions": opened.get(item.id, 0),
            "transfers": uses.get(item.id, NOTHING).open,
            "limits": render.limits(
                item, broker.allowance(tokens.principal_of(item)), uses.get(item.id, NOTHING), queued.get(item.id, 0)
            ),
            "revision": item.revision,
        }
        for item in found
    ]


@router.post("", operation_id="createToken", status_code=201, response_model=NewTokenOut)
async def create(body: TokenBody, broker: BrokerDependency, caller: Administrator) -> Response:
    """A new token. The secret is in this answer and nowhere else."""
    now_us = broker.clock()
    if body.expires is not None and body.expires <= now_us:
        raise Problem.of_field("expires", "lies in the past")
    token, secret = await tokens.create(
        broker.database,
        now_us,
        name=body.name,
        scopes=tuple(dict.fromkeys(body.scopes)),
        actor=caller.id,
        expires_us=body.expires,
        limits={name: value for name, value in body.limits.given().items() if value is not None},
    )
    return render.answer(render.token(token, secret), 201, {"Cache-Control": "no-store"})


@router.delete("/{token_id}", operation_id="revokeToken", status_code=204, response_class=Response)
async def revoke(token_id: str, broker: BrokerDependency, caller: Administrator) -> Response:
    """Revoke a token and end the sessions opened with it. Its bookings stay."""
    if "\0" in token_id:
        raise Problem("not-found", "there is no such token")
    await tokens.revoke(broker.database, broker.clock(), token_id, caller.id)
    broker.access.forget()
    broker.sessions.forget()
    return Response(status_code=204)
