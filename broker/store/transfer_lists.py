# SPDX-License-Identifier: Apache-2.0
"""Lists of transfers for people: filtered, searched and sorted by the database, page by page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal, or_, select, tuple_
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.transfer import LIVE, State
from broker.core.units import FOREVER_US
from broker.store import promises
from broker.store.promises import Now
from broker.store.tables import transfers
from broker.store.transfers import SELECT, Transfer, from_row

_SEARCHED = ("label", "project", "source", "destination", "id")
_LAST_TEXT = "\U0010ffff"
_LABEL_LENGTH = 60  # the length of the label prefix in a cursor


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of a list: every given field must match; `search` looks in label, project, both hosts and id."""

    states: tuple[str, ...] = ()
    project: str | None = None
    node: str | None = None
    mode: str | None = None
    owner: str | None = None
    source: str | None = None
    destination: str | None = None
    after: str | None = None
    search: str | None = None
    promises: tuple[str, ...] = ()
    ended_after_us: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The sort key and direction. Transfers without a value come last in either direction; equal ones are ordered by id."""

    by: str = "created"
    descending: bool = True

    @property
    def key(self) -> ColumnElement[Any]:
        """The SQL expression to sort by."""
        return _KEYS[self.by](self.descending)

    @property
    def key_type(self) -> type[int] | type[str]:
        """The type of the key in a cursor."""
        return str if self.by in _TEXTS else int


def _number(name: str) -> Callable[[bool], ColumnElement[Any]]:
    return lambda descending: func.coalesce(transfers.c[name], literal(-1 if descending else FOREVER_US))


def _text(name: str) -> Callable[[bool], ColumnElement[Any]]:
    return lambda descending: func.coalesce(
        func.left(func.lower(transfers.c[name]), _LABEL_LENGTH), literal("" if descending else _LAST_TEXT)
    )


_TEXTS = ("label", "project", "source", "destination")
_KEYS: dict[str, Callable[[bool], ColumnElement[Any]]] = {
    "created": lambda _: transfers.c.created_us,
    "start": _number("start_us"),
    "finish": _number("finish_us"),
    "promised_finish": _number("promised_us"),
    "deadline": _number("deadline_us"),
    "volume": _number("volume_bytes"),
    "priority": lambda _: transfers.c.priority,
    "state": lambda _: func.array_position(array([str(state) for state in State]), transfers.c.state),
    **{name: _text(name) for name in _TEXTS},
}
SORTS = tuple(_KEYS)

Place = tuple[int | str, str]  # key and id of the last row of the previous page


async def page(
    connection: AsyncConnection, wanted: Filter, order: Order, limit: int, after: Place | None, now: Now
) -> list[tuple[int | str, Transfer]]:
    """At most `limit` transfers behind `after`, each with its key in this order."""
    query = _matching(SELECT.add_columns(order.key.label("sort_key")), wanted)
    if after is not None:
        place, before = tuple_(order.key, transfers.c.id), tuple_(*(literal(value) for value in after))
        query = query.where(place < before if order.descending else place > before)
    ends = [order.key, transfers.c.id]
    query = query.order_by(*(end.desc() if order.descending else end.asc() for end in ends)).limit(limit)
    rows = await connection.execute(query, _values(wanted, now))
    return [(row[-1], from_row(row[:-1])) for row in rows]


async def count(connection: AsyncConnection, wanted: Filter, now: Now) -> int:
    """The number of matching transfers."""
    query = _matching(select(func.count()).select_from(transfers), wanted)
    return int((await connection.execute(query, _values(wanted, now))).scalar_one())


def _values(wanted: Filter, now: Now) -> dict[str, Any]:
    return now.values() if wanted.promises else {}


def _matching(query: Select[Any], wanted: Filter) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.states:
        conditions.append(transfers.c.state.in_(wanted.states))
    for name in ("project", "mode", "owner", "source", "destination", "after"):
        if (value := getattr(wanted, name)) is not None:
            conditions.append(transfers.c[name] == value)
    if wanted.node is not None:
        conditions.append(or_(transfers.c.source == wanted.node, transfers.c.destination == wanted.node))
    if wanted.ended_after_us is not None:
        conditions.append(and_(transfers.c.state.not_in(sorted(LIVE)), transfers.c.actual_finish_us >= wanted.ended_after_us))
    if wanted.search is not None:
        conditions.append(or_(*(transfers.c[name].icontains(wanted.search, autoescape=True) for name in _SEARCHED)))
    query = query.where(and_(True, *conditions))
    return query.where(promises.condition(wanted.promises)) if wanted.promises else query
