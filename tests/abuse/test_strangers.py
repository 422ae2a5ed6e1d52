# SPDX-License-Identifier: Apache-2.0
"""Crowds that need no token, or have a wrong one."""

import pytest

from tests.abuse.calls import repeat, request
from tests.abuse.stage import Stage, attack_with

pytestmark = pytest.mark.real_time

SECONDS = 3.0
ENROL = b'{"token": "bwe_wrong", "data_address": "127.0.0.1:7411"}'
CROWDS = {
    "400 callers with a junk token": request("GET", "/v1/transfers", "bwb_junk"),
    "400 callers of /readyz": request("GET", "/readyz"),
    "400 callers of /metrics": request("GET", "/metrics"),
    "400 callers of /": request("GET", "/"),
    "400 wrong enrolments": request("POST", "/v1/agents/enrol", body=ENROL),
    "400 wrong sign-ins": request("POST", "/v1/session", body=b'{"token": "bwb_junk"}'),
}


def _beside(stage: Stage, name: str, addresses: int) -> None:
    stage.beside(f"{name}, {addresses} addresses", lambda: attack_with(repeat, stage.port, CROWDS[name], 400, SECONDS, addresses))


def test_junk_tokens(stage: Stage) -> None:
    _beside(stage, "400 callers with a junk token", 1)


def test_junk_tokens_of_several_addresses(stage: Stage) -> None:
    _beside(stage, "400 callers with a junk token", 8)


def test_readyz(stage: Stage) -> None:
    _beside(stage, "400 callers of /readyz", 1)


def test_metrics(stage: Stage) -> None:
    _beside(stage, "400 callers of /metrics", 1)


def test_pages(stage: Stage) -> None:
    _beside(stage, "400 callers of /", 1)


def test_wrong_enrolments(stage: Stage) -> None:
    _beside(stage, "400 wrong enrolments", 1)


def test_wrong_sign_ins(stage: Stage) -> None:
    _beside(stage, "400 wrong sign-ins", 1)
