# SPDX-License-Identifier: Apache-2.0
"""What-if simulation in a process of its own: the result and its plot, which the API process must not draw itself."""

import base64
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from broker.core.network import Link, Network
from broker.desk.ground.problems import Problem
from broker.simulate import Specification, SpecificationError, run

Progress = Callable[[float, str], None]

MAX_BYTES = 16 * 2**20


class SimulationTask(NamedTuple):
    """A simulation to be run: the document of its specification, and the network as it was checked against."""

    specification: dict[str, Any]
    links: tuple[Link, ...]


def simulate(task: SimulationTask, progress: Progress) -> dict[str, Any]:
    """Raises Problem, also where the network has changed since it was checked against the specification."""
    try:
        specification = Specification.from_document(task.specification)
        result = run(specification, Network(task.links), progress, lambda: False, time.perf_counter)
    except SpecificationError as error:
        errors = [{"field": problem.field, "detail": problem.detail} for problem in error.problems]
        raise Problem("invalid", str(error), {"errors": errors}) from None
    size = len(orjson.dumps(result))
    if size > MAX_BYTES:
        raise Problem("too-large", f"the result has {size} bytes, at most {MAX_BYTES} are kept; ask for fewer points or planners")
    progress(1.0, "drawing")
    from broker.simulate.plot import draw_run  # it takes a while to load

    return {**result, "plot_png": base64.b64encode(draw_run(result)).decode()}
