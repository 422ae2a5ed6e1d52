# SPDX-License-Identifier: Apache-2.0
"""What came of a workload under one planner, before anything is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broker.core.network import Network
from broker.core.plan import Plan
from broker.core.units import US_PER_S
from broker.simulate.admission import Answers
from broker.simulate.choice import PACKETS
from broker.simulate.control import Control
from broker.simulate.packets import File, Output, service, through_network
from broker.simulate.steps import Steps, carried_by
from broker.simulate.workload import Arrival, Workload


@dataclass(frozen=True, slots=True)
class Outcome:
    """`finishes_us`: one per request in order of arrival, None for those that were refused or never end. `refusals`: their codes."""

    planner: str
    kind: str
    finishes_us: Sequence[int | None]
    plans: Sequence[Plan]
    carried: Mapping[str, Steps]
    refusals: Sequence[str]
    seconds: Sequence[float]


def of_planner(name: str, found: Answers) -> Outcome:
    """The outcome of a simulated planner, from its answers."""
    plans = [answer for answer in found.answers if isinstance(answer, Plan)]
    return Outcome(
        planner=name,
        kind=found.kind,
        finishes_us=[answer.finish_us if isinstance(answer, Plan) else None for answer in found.answers],
        plans=plans,
        carried=carried_by(plans),
        refusals=[answer.code for answer in found.answers if not isinstance(answer, Plan)],
        seconds=found.seconds,
    )


def of_packets(workload: Workload, network: Network, begin_us: int, control: Control) -> Outcome:
    """Packet switching over shortest paths; see `broker.simulate.packets`."""
    control.step(0.0)
    begin = control.timer()
    files = [_file(arrival, network, begin_us) for arrival in workload.arrivals]
    links = {link_id: service(network.links[link_id].capacity(), begin_us) for file in files for link_id in file.path}
    lasts, outputs = through_network(files, links, lambda: control.step(0.0))
    seconds = control.timer() - begin
    finishes = [begin_us + round(last * US_PER_S) if np.isfinite(last) else None for last in lasts.tolist()]
    return Outcome(
        planner=PACKETS,
        kind="baseline",
        finishes_us=finishes,
        plans=(),
        carried={link_id: _steps(output, begin_us) for link_id, output in outputs.items()},
        refusals=["infeasible"] * sum(finish is None for finish in finishes),
        seconds=[seconds],
    )


def _file(arrival: Arrival, network: Network, begin_us: int) -> File:
    request = arrival.request
    route = network.route(request.source, request.destination)
    assert route is not None
    assert request.volume_bytes is not None
    rate = request.rate_max_bps or max(route.ceiling_bps, 1)
    return File(route.path, (request.not_before_us - begin_us) / US_PER_S, request.volume_bytes * 8.0, float(rate))


def _steps(output: Output, begin_us: int) -> Steps:
    return Steps(begin_us + output.begin_s * US_PER_S, output.bps)
