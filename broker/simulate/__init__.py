# SPDX-License-Identifier: Apache-2.0
"""What-if simulation on a virtual clock: workloads, planners and baselines side by side. Pure: seeds and timers are arguments."""

from broker.simulate.control import Cancelled
from broker.simulate.run import run
from broker.simulate.specification import Specification, SpecificationError

__all__ = ["Cancelled", "Specification", "SpecificationError", "run"]
