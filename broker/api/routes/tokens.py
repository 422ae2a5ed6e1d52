# SPDX-License-Identifier: Apache-2.0
"""/v1/tokens: for administrators."""

from fastapi import APIRouter, Response

from broker.api import render
from broker.api.context import Administrator, BrokerDependency
from broker.api.operator_schemas import TokenBody, TokenInUse, TokenOut
from broker.api.routes.transfers import REFUSALS
from broker.desk.problems import Problem
from broker.fleet import tokens
from broker.store import access, transfers

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.get("", response_model=list[TokenInUse], responses=REFUSALS)
async def list_tokens(broker: BrokerDependency, _: Administrator) -> Response:
    """Every token that there ever was, without its secret."""
    async with broker.database.transaction() as connection:
        found = await access.list_tokens(connection)
        opened = await broker.sessions.open_by_token(connection, broker.clock())
        owned = await transfers.live_by_owner(connection)
    return render.answer(
        [render.token(item) | {"sessions": opened.get(item.id, 0), "transfers": owned.get(item.id, 0)} for item in found]
    )


@router.post("", status_code=201, response_model=TokenOut, responses=REFUSALS)
async def create(body: TokenBody, broker: BrokerDependency, caller: Administrator) -> Response:
    """A new token. The secret is in this answer and nowhere else."""
    now_us = broker.clock()
    if body.expires is not None and body.expires <= now_us:
        raise Problem.of_field("expires", "lies in the past")
    token, secret = await tokens.create(
        broker.database, now_us, name=body.name, scopes=tuple(dict.fromkeys(body.scopes)), actor=caller.id, expires_us=body.expires
    )
    return render.answer(render.token(token, secret), 201, {"Cache-Control": "no-store"})


@router.delete("/{token_id}", status_code=204, response_class=Response, responses=REFUSALS)
async def revoke(token_id: str, broker: BrokerDependency, caller: Administrator) -> Response:
    if "\0" in token_id:
        raise Problem("not-found", "there is no such token")
    await tokens.revoke(broker.database, broker.clock(), token_id, caller.id)
    broker.access.forget()
    broker.sessions.forget()
    return Response(status_code=204)
