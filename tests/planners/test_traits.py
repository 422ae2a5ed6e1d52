# SPDX-License-Identifier: Apache-2.0
"""What planners say of themselves is true, and it is said in one place."""

import ast
import re
from pathlib import Path

import pytest

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import DEFAULT_PLANNER, Request
from broker.planners import PLANNERS, REPLANNER, traits_of
from broker.planners.signature import Traits

ROOT = Path(__file__).parents[2]
# A name stands as a literal where the planner is defined, and once as the default. Beside that:
MAY_NAME = {
    "broker/core/request.py": {DEFAULT_PLANNER},
    "broker/cli/demo/scenario.py": {"vbls", "fbls"},  # a client that chooses, as any client does
    # The schemes of a paper's figure (Veeraraghavan et al. 2004), which stay these three whatever is registered.
    "broker/simulate/paper.py": {"vbls", "fbls"},
    "broker/simulate/plot.py": {"vbls", "fbls"},
    "broker/cli/simulate/paper.py": {"vbls"},
}


def test_joint_and_limited_planners_have_the_methods_that_go_with_it() -> None:
    for name, planner in PLANNERS.items():
        assert planner.name == name
        assert planner.traits.joint == hasattr(planner, "plan_together"), name
        assert planner.traits.time_limit == hasattr(planner, "within"), name
        assert not (planner.traits.eager and planner.traits.late), name


def test_what_plans_for_the_broker_itself_books_and_is_eager() -> None:
    for name in (DEFAULT_PLANNER, REPLANNER):
        assert traits_of(name) == Traits(eager=True), "no search, no batch, no fixed rate"
    assert traits_of("unknown") == Traits(books=False)


@pytest.mark.parametrize("name", [name for name in PLANNERS if name != "optimal"])  # which may do either
def test_fixed_rates_are_fixed(name: str) -> None:
    link = Link("1", "A", "B", 1000)
    calendar = Calendar(link.capacity())
    calendar.book(0, 1_000_000, 500)
    request = Request("r", "A", "B", 500, 0, 1000, 100, deadline_us=20_000_000)
    plan = PLANNERS[name].plan(request, Network([link]), {"1": calendar}, fewest_rows=True)
    assert isinstance(plan, Plan)
    if traits_of(name).fixed_rate:
        assert len(plan.segments) == 1
    if traits_of(name).late:
        assert plan.finish_us == request.deadline_us


def test_nobody_else_knows_planners_by_name() -> None:
    """Whoever asks "is it vbls?" misses the next planner: ask for a trait. Docstrings and help texts may name them."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}"
        for path in sorted((ROOT / "broker").rglob("*.py"))
        if path.relative_to(ROOT).parts[1] != "planners"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in PLANNERS
        if node.value not in MAY_NAME.get(str(path.relative_to(ROOT)), ())
    ]
    assert not found, found


def test_the_page_on_planning_shows_the_traits() -> None:
    page = (ROOT / "docs" / "planning.md").read_text()
    header, _, *rows = re.search(r"(\| trait .*?)\n\n", page, re.DOTALL)[1].split("\n")  # type: ignore[index]
    names = [cell.strip(" `") for cell in header.strip("|").split("|")][1:]
    assert names == list(PLANNERS)
    shown = {}
    for row in rows:
        trait, *cells = [cell.strip(" `") for cell in row.strip("|").split("|")]
        shown[trait] = {name for name, cell in zip(names, cells, strict=True) if cell}
    assert shown == {trait: {name for name in PLANNERS if getattr(traits_of(name), trait)} for trait in Traits.__dataclass_fields__}
