# SPDX-License-Identifier: Apache-2.0
"""Bodies that cost far more to parse than to send, from callers with and without a token."""

import json

import pytest

from tests.abuse.calls import repeat, request
from tests.abuse.stage import Stage, attack_with

pytestmark = pytest.mark.real_time

SECONDS = 3.0
KEYS = b"{" + b",".join(b'"%d":1' % number for number in range(500_000)) + b"}"
EMPTY = b"[" + b"{}," * 2_600_000 + b"{}]"
ITEM = {"source": "A", "destination": "B", "volume_bytes": 0}
STEPS = [{"begin": "2030-01-01T00:00:00Z", "bps": 0}] * 50_000


@pytest.mark.parametrize("path", ["/v1/session", "/v1/agents/enrol", "/v1/transfers/batch"])
def test_keys_from_a_stranger(stage: Stage, path: str) -> None:
    data = request("POST", path, body=KEYS)
    stage.beside(f"7 MB of keys to {path} without a token", lambda: attack_with(repeat, stage.port, data, 4, SECONDS))


# What a token may send: each is answered with 413 or 422, and costs the others no time.
BODIES = {
    "8 MB of {} to /v1/transfers/batch": ("POST", "/v1/transfers/batch", EMPTY),
    "10,000 wrong transfers to /v1/transfers/batch": ("POST", "/v1/transfers/batch", json.dumps([ITEM] * 10_000).encode()),
    "200,000 keys in one transfer of a batch": ("POST", "/v1/transfers/batch", b"[" + KEYS[:2_200_000].rsplit(b",", 1)[0] + b"}]"),
    "8 MB of nesting to /v1/simulations": ("POST", "/v1/simulations", b'{"a":' * 1_600_000),
    "200,000 keys to /v1/simulations": ("POST", "/v1/simulations", KEYS[:2_200_000].rsplit(b",", 1)[0] + b"}"),
    "10,000 wrong links to /v1/topology": ("PUT", "/v1/topology", json.dumps({"links": [ITEM] * 10_000}).encode()),
    "5 MB of keys to /v1/simulations": ("POST", "/v1/simulations", KEYS[:5_000_000].rsplit(b",", 1)[0] + b"}"),
    "50,000 wrong steps to /v1/links": ("POST", "/v1/links", json.dumps({"id": "X", "available": STEPS}).encode()),
    "100 KB of keys to /v1/transfers": ("POST", "/v1/transfers", KEYS[:100_000].rsplit(b",", 1)[0] + b"}"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_a_caller_with_a_token(stage: Stage, name: str) -> None:
    method, path, body = BODIES[name]
    data = request(method, path, stage.token, body)
    figures = stage.beside(name, lambda: attack_with(repeat, stage.port, data, 4, SECONDS))
    assert set(figures["answer"][0]) <= {"400", "413", "422", "429", "503"}
