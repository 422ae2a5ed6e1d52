# SPDX-License-Identifier: Apache-2.0
"""Every refusal has a status, and only the API knows which."""

import ast
from collections.abc import Iterator
from pathlib import Path

from broker.api.statuses import STATUS, problem_document, with_status
from broker.desk.ground.problems import Problem

BROKER = Path(__file__).parents[2] / "broker"


def test_every_code_that_is_raised_has_a_status() -> None:
    """One that had none would be answered with 500."""
    found = {code for path in BROKER.rglob("*.py") for code in _codes(ast.parse(path.read_text()))}
    assert len(found) > 20
    assert found <= STATUS.keys(), found - STATUS.keys()


def test_the_desk_says_nothing_of_http() -> None:
    problem = Problem("no-path", "none leads there", {"errors": []})
    assert "status" not in problem.document()
    shown = problem_document(problem)
    assert list(shown) == ["type", "title", "status", "detail", "errors"] and shown["status"] == 409


def test_a_job_that_failed_shows_a_whole_problem() -> None:
    """Its error was kept by a worker, now without a status; older ones have one."""
    kept = Problem("too-large", "it is").document()
    assert with_status(kept) == problem_document(Problem("too-large", "it is"))
    assert with_status(kept | {"status": 413}) == problem_document(Problem("too-large", "it is"))
    assert with_status({"type": "about:blank", "title": "Internal error", "detail": "?"})["status"] == 500


def _codes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Problem"), args=[ast.Constant(value=str(code)), *_]):
                yield code
            case ast.Call(func=ast.Attribute(attr="of_field"), args=[_, _, ast.Constant(value=str(code))]):
                yield code
