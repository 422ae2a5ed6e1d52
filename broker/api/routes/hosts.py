# SPDX-License-Identifier: Apache-2.0
"""/v1/hosts: for operators."""

from fastapi import Response

from broker.api import render
from broker.api.context import BrokerDependency, Operator, Reader
from broker.api.operator_schemas import EnrolmentTokenBody, EnrolmentTokenOut, HostChangeBody, HostOut, NewEnrolmentToken
from broker.api.routing import make_router
from broker.desk.ground.problems import Problem
from broker.desk.network.links import RemoveHost
from broker.fleet import enrolment
from broker.store import access, bookings, events, host_loads, hosts
from broker.store.events import Event
from broker.store.host_loads import HostLoad

router = make_router("hosts", "/v1/hosts")


@router.get("", operation_id="listHosts", response_model=list[HostOut])
async def list_hosts(broker: BrokerDependency, _: Reader) -> Response:
    """Every enrolled host."""
    async with broker.database.transaction() as connection:
        found = await hosts.get_many(connection)
        now_us = broker.clock()
        loads = await host_loads.of(connection, now_us)
    return render.answer(
        [render.host(item, now_us, broker.clock_limits, loads.get(item.name, HostLoad())) for item in found.values()]
    )


@router.post("/enrolment-tokens", operation_id="createEnrolmentToken", status_code=201, response_model=NewEnrolmentToken)
async def create_enrolment_token(body: EnrolmentTokenBody, broker: BrokerDependency, caller: Operator) -> Response:
    """A one-time token with which the agent of `host` joins at `node`. It is shown here and never again."""
    now_us = broker.clock()
    token, secret = await enrolment.create_token(
        broker.database, now_us, host=body.host, node=body.node, nic_bps=body.nic_bps, ttl_s=body.ttl_s, actor=caller.id
    )
    return render.answer(render.enrolment_token(token, now_us) | {"token": secret}, 201, {"Cache-Control": "no-store"})


@router.get("/enrolment-tokens", operation_id="listEnrolmentTokens", response_model=list[EnrolmentTokenOut])
async def list_enrolment_tokens(broker: BrokerDependency, _: Operator) -> Response:
    """The enrolment tokens, newest first, without their secrets. An agent that joins with an open token becomes its host."""
    async with broker.database.transaction() as connection:
        found = await access.list_enrolments(connection)
    now_us = broker.clock()
    return render.answer([render.enrolment_token(item, now_us) for item in found])


@router.delete("/enrolment-tokens/{token_id}", operation_id="revokeEnrolmentToken", status_code=204, response_class=Response)
async def revoke_enrolment_token(token_id: str, broker: BrokerDependency, caller: Operator) -> Response:
    """Revoke an enrolment token. If it has been used, remove its host instead."""
    if "\0" in token_id:
        raise Problem("not-found", "there is no such enrolment token")
    await enrolment.revoke_token(broker.database, broker.clock(), token_id, caller.id)
    return Response(status_code=204)


@router.get("/{host}", operation_id="getHost", response_model=HostOut)
async def show(host: str, broker: BrokerDependency, _: Reader) -> Response:
    """One host."""
    async with broker.database.transaction() as connection:
        found = await hosts.get(connection, host) if "\0" not in host else None
        if found is None:
            raise Problem("not-found", f"host {host[:64]!r} is not enrolled")
        now_us = broker.clock()
        loads = await host_loads.of(connection, now_us, host)
    return render.answer(render.host(found, now_us, broker.clock_limits, loads.get(host, HostLoad())))


@router.patch("/{host}", operation_id="changeHost", response_model=HostOut)
async def change(host: str, body: HostChangeBody, broker: BrokerDependency, caller: Operator) -> Response:
    """Drain a host: it finishes what it has and takes nothing new."""
    async with broker.database.transaction() as connection:
        before = await hosts.get(connection, host) if "\0" not in host else None
        if before is None:
            raise Problem("not-found", f"host {host[:64]!r} is not enrolled")
        await bookings.bump_topology(connection)  # so that every desk hears of it; before the host, which is the desks' order
        await hosts.set_drained(connection, host, body.drained)
        shown = ({"drained": before.drained}, {"drained": body.drained})
        await events.append(connection, [Event(broker.clock(), caller.id, "host.changed", "host", host, *shown)])
    return await show(host, broker, caller)


@router.delete("/{host}", operation_id="removeHost", status_code=204, response_class=Response)
async def remove(host: str, broker: BrokerDependency, caller: Operator) -> Response:
    """Forget a host: its token stops working, its NIC leaves the network. Refused while transfers are booked on it."""
    if "\0" in host:
        raise Problem("not-found", "there is no such host")
    await broker.desk.submit(RemoveHost(host, caller.id))
    broker.access.forget()
    return Response(status_code=204)
