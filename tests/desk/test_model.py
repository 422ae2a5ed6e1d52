# SPDX-License-Identifier: Apache-2.0
"""Random histories on two desks, with clocks that move, networks that change and databases that fail; the oracle looks after every step.

Replay a failure with the steps that hypothesis prints; the database is real and everything else is decided by the draws.
"""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.core.grid import histories
from tests.desk.machine import Broker
from tests.postgres import Server


@pytest.mark.parametrize("seed", range(2))
def test_any_history_keeps_books_and_tables_together(seed: int, postgres: Server) -> None:
    machine = type("Machine", (Broker,), {"server": postgres, "_hypothesis_internal_use_seed": seed})
    run_state_machine_as_test(
        machine,
        settings=histories(40),
    )
