# SPDX-License-Identifier: Apache-2.0
"""Observed transfers touch only packets that the source host's configuration allows; other addresses than the peer's are for operators."""

from typing import Any

from broker.fleet.tokens import Scope
from tests.api.problems import problem
from tests.fleet.world import VOLUME, Fleet
from tests.service import Service, checked

PEER = "127.0.0.1"  # where the hosts of this world listen, on port 7411
GRID = {"address": "192.0.2.0/24", "destination_ports": "5000-5100"}
WEB = {"address": "peer", "source_ports": "443"}


def _body(**match: Any) -> dict[str, Any]:
    ends = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "mode": "observed"}
    return ends | {"payload": {"match": match}}


# What the host's agent says that it allows, what is asked for, and the field that is refused.
CASES: tuple[tuple[Any, dict[str, Any], str | None], ...] = (
    # An agent that says nothing: the other host alone, and none of the ports at which it is administered or takes files in.
    (None, {"destination_ports": "5001-5010"}, None),
    (None, {"address": PEER, "destination_ports": "5001"}, None),
    (None, {"address": f"::ffff:{PEER}", "destination_ports": "5001"}, None),
    (None, {"address": "192.0.2.99", "destination_ports": "5001"}, "address"),
    (None, {}, "destination_ports"),
    (None, {"source_ports": "5001"}, "destination_ports"),
    (None, {"destination_ports": "22"}, "destination_ports"),
    (None, {"destination_ports": "1024-65535"}, "destination_ports"),
    (None, {"destination_ports": "7411"}, "destination_ports"),
    # What its administrator has said.
    ([], {"destination_ports": "5001"}, "address"),
    ([{"address": "peer"}], {"destination_ports": "22"}, None),
    ([{"address": "peer"}], {}, "destination_ports"),
    ([GRID], {"address": "192.0.2.99", "destination_ports": "5001"}, None),
    ([GRID], {"address": "192.0.2.99", "destination_ports": "5001-5101"}, "destination_ports"),
    ([GRID], {"destination_ports": "5001"}, "address"),
    ([WEB], {"source_ports": "443", "destination_ports": "32768-60999"}, None),
    ([WEB], {"source_ports": "443-444", "destination_ports": "32768-60999"}, "source_ports"),
    # What makes no sense allows nothing, and breaks nothing.
    (["peer", {"address": 7}, {}, {"address": "peer", "destination_ports": "x"}], {"destination_ports": "5001"}, "address"),
    ("peer", {"destination_ports": "5001"}, "address"),
)


async def test_only_what_the_host_allows(fleet: Fleet, service: Service) -> None:
    for said, match, refused in CASES:
        capabilities = {} if said is None else {"observe": said}
        checked(await fleet.agents["h1"].post("/v1/agents/h1/reports", json={"agent": {"capabilities": capabilities}}))
        answer = await service.client.post("/v1/transfers", json=_body(**match))
        if refused is None:
            checked(answer, 201)
        else:
            assert problem(answer, 422, "unsupported", f"payload.match.{refused}")["host"] == "h1"
    (item,) = checked(await service.client.post("/v1/transfers/batch", json=[_body(destination_ports="22")]))["items"]
    assert item["problem"]["errors"][0]["field"] == "payload.match.address"


async def test_another_address_is_for_operators(fleet: Fleet, service: Service) -> None:
    checked(
        await fleet.agents["h1"].post(
            "/v1/agents/h1/reports", json={"agent": {"capabilities": {"observe": [GRID, {"address": "peer"}]}}}
        )
    )
    submitter = service.as_token(await service.token(Scope.SUBMIT))
    elsewhere = _body(address="192.0.2.99", destination_ports="5001")
    assert (
        problem(await submitter.post("/v1/transfers", json=elsewhere), 403, "forbidden", "payload.match.address")["scope"]
        == "operate"
    )
    checked(await submitter.post("/v1/transfers", json=_body(destination_ports="5001")), 201)
    checked(await service.client.post("/v1/transfers", json=elsewhere), 201)
