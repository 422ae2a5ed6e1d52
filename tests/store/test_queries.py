# SPDX-License-Identifier: Apache-2.0
"""Queries stand in broker/store and nowhere else: whoever reads it has seen every statement that reaches the database."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
APART = {"store", "embedded"}  # `bwb up` makes the cluster and its database, before there is a table to query


def test_only_the_store_speaks_to_the_database() -> None:
    """Others pass a connection on (its type is all that they may import), and execute nothing on it."""
    others = [path for path in (ROOT / "broker").rglob("*.py") if path.relative_to(ROOT).parts[1] not in APART]
    assert len(others) > 200
    found = [f"{path.relative_to(ROOT)}:{line} {what}" for path in others for line, what in _queries(ast.parse(path.read_text()))]
    assert not found, found


def test_the_rule_sees_queries() -> None:
    statement = 'from sqlalchemy import text\nasync def read(connection):\n    await connection.execute(text("SELECT 1"))\n'
    assert list(_queries(ast.parse(statement))) == [(1, "imports sqlalchemy.text"), (3, "executes")]


def _queries(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in ("sqlalchemy", "psycopg"):
                for name in node.names:
                    if name.name != "AsyncConnection":
                        yield node.lineno, f"imports {module}.{name.name}"
            case ast.Import():
                for name in node.names:
                    if name.name.partition(".")[0] in ("sqlalchemy", "psycopg"):
                        yield node.lineno, f"imports {name.name}"
            case ast.Call(func=ast.Attribute(attr="execute" | "exec_driver_sql" | "scalar" | "scalars")):
                yield node.lineno, "executes"
