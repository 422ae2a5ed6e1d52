# SPDX-License-Identifier: Apache-2.0
"""Shares booked: one instant by itself is what it is among many."""

import random

import numpy as np
import pytest

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.views.link_load import share_at, shares


@pytest.mark.parametrize("seed", range(20))
def test_an_instant_by_itself(seed: int) -> None:
    """Capacity of nothing, links that carry more than they have left, and every change a microsecond before, at it and after."""
    rng = random.Random(seed)
    steps = sorted(rng.sample(range(1, 1000), 4))
    capacity = [(DISTANT_PAST_US, 1000), *((at, rng.choice((0, 0, 300, 1000))) for at in steps)]
    calendar = Calendar(capacity)
    for _ in range(6):
        begin, end = sorted(rng.sample(range(1, 1000), 2))
        calendar.book(begin, end, rng.choice((7, 100, 400)))
    for change in (*steps, *(at for at, _ in calendar.steps())):
        for at in (change - 1, change, change + 1):
            if at > 0:
                assert [share_at(calendar, at)] == shares(calendar, np.array([at], np.int64), at + 1)
