# SPDX-License-Identifier: Apache-2.0
"""Rehearsals in a process of the pool: it caches the replica between them, and reads its budget from a clock."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from broker.desk.ground.batch import NotLocked
from broker.desk.ground.replica import Replica
from broker.desk.service.rehearsal import Rehearsal, Rehearsed, rehearse

_known: dict[str, Any] = {}


class Sent(NamedTuple):
    """A rehearsal on its way: of its replica only what the process does not have already (the network is large, and seldom new)."""

    rehearsal: Rehearsal
    replica: Mapping[str, Any]
    budget_s: float


def rehearse_sent(sent: Sent, progress: Callable[[float, str], None]) -> Rehearsed | NotLocked:  # noqa: ARG001
    """Decide on a command in this process, within its budget of wall-clock time."""
    end = time.monotonic() + sent.budget_s
    _known.update(sent.replica)
    replica = Replica()
    vars(replica).update(_known)
    del _known["calendars"]
    try:
        return rehearse(replace(sent.rehearsal, replica=replica), lambda: time.monotonic() >= end)
    except NotLocked as elsewhere:
        return elsewhere


def prepare(_: None, progress: Callable[[float, str], None]) -> None:  # noqa: ARG001
    """Load what the first rehearsal would wait for, the solver too."""
    from broker.planners import warm_up, warm_up_searches

    warm_up()
    warm_up_searches()
