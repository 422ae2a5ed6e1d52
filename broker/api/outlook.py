# SPDX-License-Identifier: Apache-2.0
"""How a transfer goes: its promise, its progress against the plan, when it will finish, and whose it is. For people; asked for by `outlook`."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.api.render import Json, time_or_none
from broker.core.segments import total_rates
from broker.core.transfer import State
from broker.predict.finish import MIN_REPORTS, Step, finish
from broker.store import names, promises, reports
from broker.store.promises import STATUS, Now
from broker.store.reports import Reached
from broker.store.transfers import Transfer

WHY = {
    "kept": "as planned",
    "booked_late": "its booking ends later than was promised",
    "overdue": "it was to have finished",
    "late": "it finished later than was promised",
    "failed": "it failed",
    "withdrawn": "it was withdrawn: an agent never fetched it, or nobody used it",
    "unheard": "nothing is heard of it; it may be under way",
    "host_down": "the agent of one of its hosts is silent",
    "not_begun": "its time has come, and its agents have not begun",
    "behind": "what is still booked does not suffice for what is left",
}


async def outlooks(connection: AsyncConnection, records: Sequence[Transfer], now: Now) -> dict[str, Json]:
    """By transfer id, in three queries however many there are."""
    standing = await promises.of(connection, [record.id for record in records], now)
    called = await names.of(connection, {record.owner for record in records})
    moving = [record.id for record in records if record.state is State.ACTIVE and record.mode != "reserve"]
    reached = await reports.read_rates(connection, moving) if moving else {}
    return {
        record.id: _outlook(record, standing.get(record.id), reached.get(record.id, []), now.now_us)
        | {"owner_name": called.get(record.owner, record.owner)}
        for record in records
    }


def _detail(record: Transfer, why: str) -> str:
    """What has ended says itself what ended it."""
    told = record.reason.detail if record.reason is not None and not record.live else None
    return str(told or WHY[why])


def _outlook(record: Transfer, why: str | None, reached: Sequence[Reached], now_us: int) -> Json:
    shares = [report.rate_bps / report.applied_bps for report in reached]
    plan = [Step(*step) for step in total_rates(record.segments)]
    carried = record.carried_by(now_us)
    planned = carried if record.spec.volume_bytes is None else min(carried, record.spec.volume_bytes)
    found = None
    if record.live and not record.paused:
        by_clock = record.mode == "reserve" or record.spec.volume_bytes is None
        left = record.booked_bytes - carried if by_clock else (record.spec.volume_bytes or 0) - record.bytes_done
        found = finish(plan, now_us, left, shares)
    measured = found is not None and len(shares) >= MIN_REPORTS
    return {
        "promise": None if why is None else STATUS[why],
        "why": why,
        "detail": None if why is None else _detail(record, why),
        "planned_bytes": planned,
        "expected_finish": None if found is None else time_or_none(found.expected_us),
        "earliest_finish": None if found is None else time_or_none(found.earliest_us),
        "latest_finish": None if found is None else time_or_none(found.latest_us),
        "model": None if found is None else ("reports" if measured else "plan"),
        "applied_bps": reached[0].applied_bps if reached else None,
        "share": round(found.share, 4) if found is not None and measured else None,
    }
