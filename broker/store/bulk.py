# SPDX-License-Identifier: Apache-2.0
"""Many rows in one statement, on the driver itself: this is the admission path, and SQLAlchemy's share of it would be the larger one.

New rows travel by COPY, which beats INSERT even for one. Where rows are returned, conflicts resolved or columns updated, they travel as
arrays that come out of `unnest`, so that the statement text never changes and is prepared once.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import psycopg
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.scans import Int64Array

Row = Sequence[Any]

# Signature, flags, and the length of an extension that nobody has made yet.
_COPY_HEADER = 19
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def driver(connection: AsyncConnection) -> "psycopg.AsyncConnection[tuple[Any, ...]]":
    """The psycopg connection below, in the same transaction."""
    sync = connection.sync_connection
    assert sync is not None
    found = sync.connection.driver_connection
    assert isinstance(found, psycopg.AsyncConnection)
    return found


async def execute(connection: AsyncConnection, statement: str, values: Mapping[str, Any]) -> list[Row]:
    """One statement with %(name)s parameters; its rows, if it returns any."""
    cursor = await driver(connection).execute(statement.encode(), values)
    return list(await cursor.fetchall()) if cursor.description is not None else []


async def integers(connection: AsyncConnection, query: str, values: Mapping[str, Any], columns: int) -> Int64Array:
    """What a query of bigints answers, a row for each of its columns: by COPY, for a hundred thousand rows of objects take 40 MB."""
    data = bytearray()
    async with (
        driver(connection).cursor() as cursor,
        cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT BINARY)".encode(), values) as pipe,
    ):
        while piece := await pipe.read():
            data += piece
    # A tuple is a count of fields and each field after its length; a header is before them, and a count of -1 after.
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
