# SPDX-License-Identifier: Apache-2.0
"""Who may import whom (the contracts in pyproject.toml), and what pure code may not do (design, section 8, number 4)."""

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PURE = sorted(path for folder in ("core", "planners") for path in (ROOT / "broker" / folder).rglob("*.py"))

# Clocks, randomness, and ways to the outside world.
FORBIDDEN_MODULES = {
    "asyncio", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "platform", "random", "secrets", "shutil", "signal", "socket",
    "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
# The door to OR-Tools: while a solver runs in native code, a thread asks `cancelled`. It decides nothing.
EXCUSED = {"broker/planners/optimal/solver.py": ["imports threading"]}
FORBIDDEN_ATTRIBUTES = {"now", "utcnow", "today", "random", "default_rng", "fromtimestamp"}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def impurities(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            names = []
        for name in names:
            if name.split(".")[0] in FORBIDDEN_MODULES or name.startswith("numpy.random"):
                yield f"line {node.lineno}: imports {name}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
            yield f"line {node.lineno}: .{node.attr}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield f"line {node.lineno}: {node.func.id}()"


def test_dependencies_go_one_way() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(ROOT)))
def test_core_and_planners_read_no_clock_and_draw_no_lots(path: Path) -> None:
    excused = EXCUSED.get(str(path.relative_to(ROOT)), [])
    assert [found.split(": ", 1)[1] for found in impurities(path.read_text())] == excused


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from time import monotonic",
        "from random import random",
        "from numpy import random",
        "import numpy.random",
        "def f():\n    import uuid",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\nclock = datetime.datetime.utcnow",
        "import numpy as np\nnp.random.default_rng()",
        "open('x')",
        "print(1)",
    ],
)
def test_the_scan_finds_what_it_looks_for(source: str) -> None:
    assert list(impurities(source))


GRAPH = grimp.build_graph("broker", "tests", cache_dir=None)  # with what is imported for types alone, and in functions
IMPORTS = {module: GRAPH.find_modules_directly_imported_by(module) for module in sorted(GRAPH.modules)}


def circles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Those that import each other, directly or through others: the larger of the strongly connected components (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        open_.append(module)
        for imported in imports[module]:
            if imported not in number:
                visit(imported)
            if imported in open_:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == number[module]:
            at = open_.index(module)
            together, open_[at:] = open_[at:], []
            if len(together) > 1:
                found.append(sorted(together))

    for module in imports:
        if module not in number:
            visit(module)
    return found


def floors(arrows: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Each room stands one above the highest that it needs; the lowest are on floor 1."""
    assert circles(arrows) == []

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(below) for below in arrows[room]), default=0)

    return {room: floor(room) for room in arrows}


def test_nobody_imports_himself_through_others() -> None:
    assert circles(IMPORTS) == []


def test_circles_and_floors_are_found() -> None:
    assert circles({"a": "b", "b": "c", "c": "a", "d": "a", "e": ""}) == [["a", "b", "c"]]
    assert circles({"a": "bc", "b": "c", "c": "", "d": "ae", "e": "d"}) == [["d", "e"]]
    assert floors({"a": "bc", "b": "c", "c": "", "d": "c"}) == {"a": 3, "b": 2, "c": 1, "d": 2}


def test_the_rooms_of_the_desk_are_few_floors_high() -> None:
    """An arrow leads from one room (a package, or a module, right below broker.desk) to another: any number of imports are one arrow."""

    def room(module: str) -> str | None:
        words = module.split(".")
        return words[2] if words[:2] == ["broker", "desk"] and len(words) > 2 else None

    rooms: dict[str, set[str]] = {found: set() for module in IMPORTS if (found := room(module))}
    for module, imported in IMPORTS.items():
        if (mine := room(module)) is not None:
            rooms[mine] |= {theirs for one in imported if (theirs := room(one)) not in (None, mine)}
    arrows, height = sum(map(len, rooms.values())), floors(rooms)
    for name in sorted(rooms, key=lambda name: (-height[name], name)):
        print(f"floor {height[name]}: {name} -> {', '.join(sorted(rooms[name])) or '-'}")
    print(f"broker/desk: {len(rooms)} rooms, {max(height.values())} floors, {arrows} arrows")
    assert max(height.values()) <= 8
    assert arrows <= 45


def test_what_tests_share_is_in_no_test_module() -> None:
    """Nor in a conftest.py, which pytest loads by itself: imported as well, it would be there twice."""
    private = {name for name in GRAPH.modules if name.rpartition(".")[2].startswith("test_") or name.endswith(".conftest")}
    assert [
        f"{importer} imports {name}" for name in sorted(private) for importer in GRAPH.find_modules_that_directly_import(name)
    ] == []
