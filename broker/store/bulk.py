# SPDX-License-Identifier: Apache-2.0
"""Many rows in one statement: columns travel as arrays and come out of `unnest`, so the statement text never changes and is prepared once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Table, TextClause, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

Row = Sequence[Any]

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def _array_types(table: Table, columns: tuple[str, ...]) -> list[tuple[str, str]]:
    """(array type to send, cast to apply) per column; JSON and bytes travel as text and bytea."""
    types = []
    for name in columns:
        sql_type = table.c[name].type.compile(_DIALECT)
        types.append(("text", f"::{sql_type}") if sql_type == "JSONB" else (sql_type, ""))
    return types


def _source(table: Table, columns: tuple[str, ...]) -> str:
    arrays = ", ".join(f"CAST(:{name} AS {sent}[])" for name, (sent, _) in zip(columns, _array_types(table, columns), strict=True))
    return f"unnest({arrays}) AS new({', '.join(columns)})"


def _casts(table: Table, columns: tuple[str, ...]) -> dict[str, str]:
    return {name: f"new.{name}{cast}" for name, (_, cast) in zip(columns, _array_types(table, columns), strict=True)}


@cache
def _insert(table: Table, columns: tuple[str, ...], suffix: str) -> TextClause:
    chosen = ", ".join(_casts(table, columns).values())
    return text(f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {chosen} FROM {_source(table, columns)} {suffix}")  # noqa: S608


@cache
def _update(table: Table, key: str, columns: tuple[str, ...]) -> TextClause:
    assignments = ", ".join(f"{name} = {value}" for name, value in _casts(table, columns).items() if name != key)
    return text(f"UPDATE {table.name} SET {assignments} FROM {_source(table, columns)} WHERE {table.name}.{key} = new.{key}")  # noqa: S608


def _parameters(columns: tuple[str, ...], rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)}


async def insert(
    connection: AsyncConnection, table: Table, columns: tuple[str, ...], rows: Sequence[Row], suffix: str = ""
) -> list[Row]:
    """Insert `rows` (values in the order of `columns`; JSON values as text). Returns what a RETURNING in `suffix` gives."""
    if not rows:
        return []
    result = await connection.execute(_insert(table, columns, suffix), _parameters(columns, rows))
    return list(result) if result.returns_rows else []


async def copy(connection: AsyncConnection, table: Table, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """As `insert`, by COPY: the least work a row on both sides, where there is no conflict to resolve and nothing to return."""
    if not rows:
        return
    driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None
    async with driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({', '.join(columns)}) FROM STDIN") as pipe:
        for row in rows:
            await pipe.write_row(row)


async def update(connection: AsyncConnection, table: Table, key: str, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Set `columns` of the rows with the given `key` (one of the columns)."""
    if rows:
        await connection.execute(_update(table, key, columns), _parameters(columns, rows))
