# SPDX-License-Identifier: Apache-2.0
"""Run a simulation: the same workload through every planner, on a virtual clock."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from broker.core.network import Network
from broker.core.units import US_PER_S
from broker.planners import warm_up
from broker.simulate.admission import serve
from broker.simulate.choice import PACKETS, planner
from broker.simulate.control import Control
from broker.simulate.measures import Frame, frame, measure
from broker.simulate.outcome import Outcome, of_packets, of_planner
from broker.simulate.specification import Specification, SpecificationError, as_document
from broker.simulate.workload import Workload, draw

_STEP_EVERY = 64


def run(
    specification: Specification,
    network: Network,
    progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
    timer: Callable[[], float],
) -> dict[str, Any]:
    """The result as one JSON document: {"specification", "workload", "planners": [one `Measures` each]}.

    `progress` hears the share done and what is being done; `cancelled` is asked often and ends it by Cancelled; `timer` (seconds, any
    origin) measures planning times, the one part of the result that is not reproducible. Raises SpecificationError when the network
    and the specification do not fit together.
    """
    problems = list(specification.problems(network))
    if problems:
        raise SpecificationError(problems)
    control = Control(progress, cancelled, timer)
    control.enter(0.0, 0.02, "drawing requests")
    warm_up()  # otherwise the first planner's times would be the compiler's
    workload = draw(specification, network)
    control.enter(0.02, 0.05, "finding paths")
    _find_paths(specification, workload, network, control)
    outcomes = []
    share = 0.93 / len(specification.planners)
    for i, name in enumerate(specification.planners):
        control.enter(0.05 + i * share, 0.05 + (i + 1) * share, name)
        outcomes.append(_outcome(name, specification, workload, network, control))
    control.enter(0.98, 1.0, "measuring")
    against = frame(workload, outcomes, network, specification.begin_us, specification.points)
    measures = [asdict(measure(outcome, workload, against)) for outcome in outcomes]
    control.enter(1.0, 1.0, "done")
    return {"specification": as_document(specification), "workload": _about(workload, against), "planners": measures}


def _find_paths(specification: Specification, workload: Workload, network: Network, control: Control) -> None:
    """The network keeps them: otherwise the first planner's times would be those of the search."""
    if set(specification.planners) == {PACKETS}:
        return
    ends = list(dict.fromkeys((request.source, request.destination) for _, request, _ in workload.arrivals))
    for i, (source, destination) in enumerate(ends):
        if i % _STEP_EVERY == 0:
            control.step(i / len(ends))
        network.routes(source, destination, specification.options.paths)


def _outcome(name: str, specification: Specification, workload: Workload, network: Network, control: Control) -> Outcome:
    if name == PACKETS:
        return of_packets(workload, network, specification.begin_us, control)
    chosen = planner(name, specification.solver_time_limit_s, control.cancelled)
    found = serve(chosen, workload, network, specification.batch_us, specification.begin_us, control)
    return of_planner(name, found)


def _about(workload: Workload, against: Frame) -> dict[str, Any]:
    sizes = [arrival.request.volume_bytes or 0 for arrival in workload.arrivals]
    return {
        "requests": len(sizes),
        "bytes": sum(sizes),
        "mean_bytes": sum(sizes) / len(sizes),
        "offered_load": workload.offered_load,
        "last_arrival_s": (workload.arrivals[-1].arrival_us - against.begin_us) / US_PER_S,
        "horizon_s": (against.horizon_us - against.begin_us) / US_PER_S,
    }
