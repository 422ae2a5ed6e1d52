# SPDX-License-Identifier: Apache-2.0
"""All processes of a broker that have a desk go by one policy: what the operator has set."""

import ast
from dataclasses import asdict
from pathlib import Path

import pytest

from broker.desk.ground.policy import Policy, policy_of
from broker.jobs import periodic
from broker.settings import Settings

ROOT = Path(__file__).parents[2]
SET = {"hold_s": 7, "managed_lead_ms": 11, "replan_lead_ms": 13, "managed_margin_ppm": 17, "managed_margin_ms": 19}


def test_everything_that_can_be_set_is_taken() -> None:
    policy = policy_of(Settings(**SET))  # type: ignore[arg-type]
    usual = asdict(Policy())
    differs = {name for name, value in asdict(policy).items() if value != usual[name]}
    assert differs == {"hold_us", "managed_lead_us", "replan_lead_us", "managed_margin_ppm", "managed_margin_us"}
    assert policy_of(Settings()) == Policy(), "one default each"


def test_a_worker_goes_by_the_policy_of_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to drop holds and margins, and pulled forward with those of the defaults."""
    chosen = Settings(database_url="postgresql://nobody@nowhere/none", **SET)  # type: ignore[arg-type]
    monkeypatch.setattr(periodic, "settings", lambda: chosen)
    process = periodic._Process()
    try:
        assert process.policy == policy_of(chosen)
    finally:
        process.runner.close()


def test_nobody_builds_one_of_his_own() -> None:
    allowed = {"broker/desk/ground/policy.py", "broker/desk/service/desk.py"}  # the desk's, where none is given: in tests
    builds = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "broker").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == Policy.__name__
    }
    assert builds <= allowed, builds - allowed
