# SPDX-License-Identifier: Apache-2.0
"""Many rows in one statement, on the driver itself: this is the admission path, and SQLAlchemy would take most of its time.

Many new rows are sent by COPY, few rows of several tables together as JSON in one statement. Where rows are returned, conflicts
resolved or columns updated, rows are sent as arrays for `unnest`, so that the statement text never changes and is prepared once.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import orjson
import psycopg
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.scans import Int64Array

Row = Sequence[Any]

# Up to this many rows JSON is faster: a desk's transaction of one transfer (three rows) takes 2.4 ms instead of 3.3; with 40 both
# are equal.
_FEW = 100

# Signature, flags, and the length of the header extension, which is not used so far.
_COPY_HEADER = 19
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def driver(connection: AsyncConnection) -> "psycopg.AsyncConnection[tuple[Any, ...]]":
    """The underlying psycopg connection, in the same transaction."""
    sync = connection.sync_connection
    assert sync is not None
    found = sync.connection.driver_connection
    assert isinstance(found, psycopg.AsyncConnection)
    return found


async def execute(connection: AsyncConnection, statement: str, values: Mapping[str, Any]) -> list[Row]:
    """Run one statement with %(name)s parameters; returns its rows, if any."""
    cursor = await driver(connection).execute(statement.encode(), values)
    return list(await cursor.fetchall()) if cursor.description is not None else []


async def integers(connection: AsyncConnection, query: str, values: Mapping[str, Any], columns: int) -> Int64Array:
    """The result of a query of bigints, one array row per column: by COPY, because a hundred thousand rows of objects take 40 MB."""
    data = bytearray()
    async with (
        driver(connection).cursor() as cursor,
        cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT BINARY)".encode(), values) as pipe,
    ):
        while piece := await pipe.read():
            data += piece
    # A tuple is a field count and each field after its length; a header precedes the tuples, and a count of -1 ends them.
    row = np.dtype([("fields", ">i2"), ("columns", [("length", ">i4"), ("value", ">i8")], columns)])
    rows = np.frombuffer(data, row, (len(data) - _COPY_HEADER - 2) // row.itemsize, _COPY_HEADER)
    return rows["columns"]["value"].T.astype(np.int64)


async def append(connection: AsyncConnection, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert `rows` (values in the order of `columns`; JSON as text)."""
    if not rows:
        return
    statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN".encode()
    async with driver(connection).cursor() as cursor, cursor.copy(statement) as pipe:
        for row in rows:
            await pipe.write_row(row)


class Added(NamedTuple):
    """New rows of one table (values in the order of `columns`; JSON as text)."""

    table: Table
    columns: tuple[str, ...]
    rows: Sequence[Row]


async def append_all(
    connection: AsyncConnection, added: Sequence[Added], also: Mapping[str, str], last: str, values: Mapping[str, Any]
) -> list[Row]:
    """Insert into several tables, then run `also` (name -> statement) and `last` with `values`; returns the rows of `last`.

    Few rows go in one statement. COPY is cheaper for many, but takes two round trips per table, during which an admission of one
    transfer would hold the locks of its links.
    """
    if sum(len(each.rows) for each in added) > _FEW:
        for each in added:
            await append(connection, *each)
        return await execute(connection, _together((), tuple(also.items()), last), values)
    shapes = tuple((each.table, each.columns) for each in added)
    documents = {each.table.name: _document(each) for each in added}
    return await execute(connection, _together(shapes, tuple(also.items()), last), {**values, **documents})


@cache
def _together(shapes: tuple[tuple[Table, tuple[str, ...]], ...], also: tuple[tuple[str, str], ...], last: str) -> str:
    """One statement: rows of each shape from a JSON document named like its table, `also`, and `last`."""
    inserts = [(f"new_{table.name}", _insert_json(table, columns)) for table, columns in shapes]
    return f"WITH {', '.join(f'{name} AS ({statement})' for name, statement in (*inserts, *also))} {last}"


def _insert_json(table: Table, columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    typed = ", ".join(f"{name} {table.c[name].type.compile(_DIALECT)}" for name in columns)
    return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM json_to_recordset(%({table.name})s::json) AS new({typed})"


def _document(added: Added) -> str:
    nested = [index for index, name in enumerate(added.columns) if isinstance(added.table.c[name].type, JSONB)]
    objects = []
    for row in added.rows:
        values = list(row)
        for index in nested:
            if values[index] is not None:
                values[index] = orjson.Fragment(values[index])
        objects.append(dict(zip(added.columns, values, strict=True)))
    return orjson.dumps(objects).decode()


async def insert(
    connection: AsyncConnection, table: Table, columns: tuple[str, ...], rows: Sequence[Row], suffix: str = ""
) -> list[Row]:
    """Insert `rows` and return what a RETURNING in `suffix` gives."""
    return await execute(connection, _insert(table, columns, suffix), _parameters(columns, rows)) if rows else []


async def update(connection: AsyncConnection, table: Table, key: str, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Set `columns` of the rows with the given `key` (one of the columns)."""
    if rows:
        await execute(connection, _update(table, key, columns), _parameters(columns, rows))


def _parameters(columns: tuple[str, ...], rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)}


@cache
def _insert(table: Table, columns: tuple[str, ...], suffix: str) -> str:
    chosen = ", ".join(_casts(table, columns).values())
    return f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {chosen} FROM {_source(table, columns)} {suffix}"


@cache
def _update(table: Table, key: str, columns: tuple[str, ...]) -> str:
    assignments = ", ".join(f"{name} = {value}" for name, value in _casts(table, columns).items() if name != key)
    return f"UPDATE {table.name} SET {assignments} FROM {_source(table, columns)} WHERE {table.name}.{key} = new.{key}"


def _array_types(table: Table, columns: tuple[str, ...]) -> list[tuple[str, str]]:
    """(array type to send, cast to apply) per column; JSON travels as text."""
    types = []
    for name in columns:
        sql_type = table.c[name].type.compile(_DIALECT)
        types.append(("text", f"::{sql_type}") if sql_type == "JSONB" else (sql_type, ""))
    return types


def _source(table: Table, columns: tuple[str, ...]) -> str:
    arrays = ", ".join(f"%({name})s::{sent}[]" for name, (sent, _) in zip(columns, _array_types(table, columns), strict=True))
    return f"unnest({arrays}) AS new({', '.join(columns)})"


def _casts(table: Table, columns: tuple[str, ...]) -> dict[str, str]:
    return {name: f"new.{name}{cast}" for name, (_, cast) in zip(columns, _array_types(table, columns), strict=True)}
