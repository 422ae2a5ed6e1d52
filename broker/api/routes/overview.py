# SPDX-License-Identifier: Apache-2.0
"""/v1/overview: is all well? /v1/network/load: how full is each link, now and in the next hours?"""

from typing import Annotated

from fastapi import Query, Response

from broker.api import render
from broker.api.context import Broker, BrokerDependency, Reader
from broker.api.fields import Time
from broker.api.outlook import WHY
from broker.api.overview_schemas import NetworkLoadOut, OverviewOut
from broker.api.routing import make_router
from broker.api.spans import To, span
from broker.core.transfer import State
from broker.core.units import MAX_TIME_US, US_PER_S, format_time
from broker.desk.ground.problems import Problem
from broker.store import overview as counts
from broker.store import promises, refusals
from broker.store.promises import Endangered

router = make_router("overview", "/v1")

_HOUR_US = 3600 * US_PER_S
_DAY_US = 24 * _HOUR_US
_BUSIEST = 20


@router.get("/overview", operation_id="getOverview", response_model=OverviewOut)
async def overview(broker: BrokerDependency, _: Reader) -> Response:
    """Promises kept, at risk and broken; admissions and refusals with their reasons; transfers, agents, links."""
    now_us, silence_us = broker.clock(), broker.clock_limits.silence_us
    day_us = now_us - _DAY_US
    async with broker.database.transaction() as connection:
        now = await promises.look(connection, now_us, silence_us)
        standing = await promises.count(connection, now, day_us)
        endangered = (
            await promises.find_endangered(connection, now)
            if standing.live[promises.AT_RISK] or standing.live[promises.BROKEN]
            else []
        )
        hours = await counts.read_decisions(connection, day_us, _HOUR_US, 24)
        reasons = await refusals.count_by_reason(connection, now_us - _HOUR_US, day_us)
        states = await counts.count_by_state(connection, day_us)
        agents = await counts.count_agents(connection, now_us - silence_us // 2, now_us - silence_us)
    shown = {
        "at": format_time(now_us),
        "promises": {"live": standing.live, "day": standing.ended, "endangered": [_endangered(item) for item in endangered]},
        "decisions": {
            "admitted_hour": hours[-1].admitted,
            "admitted_day": sum(hour.admitted for hour in hours),
            "refused_hour": hours[-1].refused,
            "refused_day": sum(hour.refused for hour in hours),
            "reasons": [{"reason": reason, "hour": hour, "day": day} for reason, (hour, day) in reasons.items()],
            "hours": [
                {"begin": format_time(begin), "admitted": admitted, "refused": refused} for begin, admitted, refused in hours
            ],
        },
        "transfers": {str(state): states.get(str(state), 0) for state in State},
        "agents": agents._asdict(),
        "links": await _links(broker, now_us),
    }
    return render.answer(shown)


def _endangered(item: Endangered) -> render.Json:
    return {
        "id": item.id,
        "label": item.label,
        "project": item.project,
        "source": item.source,
        "destination": item.destination,
        "state": item.state,
        "priority": item.priority,
        "promise": promises.STATUS[item.why],
        "why": item.why,
        "detail": WHY[item.why],
        "promised_finish": format_time(item.promised_us),
        "finish": format_time(item.finish_us),
    }


async def _links(broker: Broker, now_us: int) -> render.Json:
    loads = {load.link_id: load.shares[0] for load in await broker.link_load.load(now_us, now_us + 1, 1)}
    replica = await broker.link_load.replica()
    busiest = sorted(loads, key=lambda link_id: (-(loads[link_id] or 0.0), link_id))[:_BUSIEST]
    rows = []
    for link_id in busiest:
        record = replica.records.get(link_id)
        if record is None:  # gone since
            continue
        calendar = replica.calendars[link_id]
        capacity = calendar.capacity_at(now_us)
        rows.append({
            "id": link_id,
            "source": record.link.source,
            "target": record.link.target,
            "capacity_bps": capacity,
            "booked_bps": capacity - calendar.free_at(now_us),
            "share": loads[link_id],
        })  # fmt: skip
    return {"number": len(loads), "busiest": rows}


@router.get("/network/load", operation_id="getNetworkLoad", response_model=NetworkLoadOut)
async def load(
    broker: BrokerDependency,
    _: Reader,
    at: Annotated[
        Time | None, Query(description="one instant, in place of `from`, `to` and `steps`; the past counts as now")
    ] = None,
    begin: Annotated[Time | None, Query(alias="from", description="default, and where it lies in the past: now")] = None,
    end: To = None,
    steps: Annotated[int, Query(ge=1, le=1000, description="equal spans of time")] = 96,
) -> Response:
    """The largest booked share of every link in each span of time, for an animated map."""
    now_us = broker.clock()
    if at is not None:
        if at >= MAX_TIME_US:
            raise Problem.of_field("at", f"must lie before {format_time(MAX_TIME_US)}")
        begin_us, steps = max(at, now_us), 1
        end_us = begin_us + 1
    else:
        begin_us, end_us = span(max(begin or now_us, now_us), end, now_us, min_us=steps)
    found = await broker.link_load.load(begin_us, end_us, steps)
    links = [{"id": link_id, "shares": shares} for link_id, shares in found]
    return render.answer({"begin": format_time(begin_us), "end": format_time(end_us), "steps": steps, "links": links})
