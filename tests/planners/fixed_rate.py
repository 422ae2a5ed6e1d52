# SPDX-License-Identifier: Apache-2.0
"""ALAP and FBLS by trying every slot."""

import numpy as np

from tests.core.grid import MICROBITS_PER_BYTE, Scenario


def suffix(scenario: Scenario) -> np.ndarray:
    """Microbits that can be carried from each slot of the window to its end."""
    request, slot = scenario.request, scenario.slot
    assert request.deadline_us is not None
    end = request.deadline_us // slot * slot
    if end <= scenario.first_slot:
        return np.zeros(0, np.int64)
    return np.cumsum(scenario.usable(scenario.slots(end))[::-1])[::-1] * slot


def latest_start(scenario: Scenario) -> int | None:
    """The last slot from which everything that is left of the window just suffices."""
    assert scenario.request.volume_bytes is not None
    enough = np.flatnonzero(suffix(scenario) >= scenario.request.volume_bytes * MICROBITS_PER_BYTE)
    return int(scenario.first_slot + enough[-1] * scenario.slot) if len(enough) else None


def rate_of(scenario: Scenario) -> int:
    """The one rate that is booked: Rmax, or else the most that the path can carry from not_before on; 0 when there is none."""
    request = scenario.request
    end = scenario.settled_us + 1
    ever = min(int(link.levels.max()) for link in scenario.links)
    rate = request.rate_max_bps
    if rate is None:
        rate = min(int(link.gamma(request.not_before_us, end).max()) for link in scenario.links)
    elif rate // scenario.channel > ever // scenario.channel:
        return 0
    rate = max(rate, 0) // scenario.channel * scenario.channel
    return 0 if rate < (request.rate_min_bps or 0) else rate


def earliest_start(scenario: Scenario) -> tuple[int, int] | None:
    """(start, finish) by trying every slot up to the point from which nothing changes."""
    request, slot, rate = scenario.request, scenario.slot, rate_of(scenario)
    assert request.volume_bytes is not None
    if rate == 0:
        return None
    length = -(-request.volume_bytes * MICROBITS_PER_BYTE // (rate * slot))
    free = scenario.slots(scenario.settled_us + slot) >= rate
    for i in range(len(free)):
        window = free[i : i + length]  # cut off at the end, after which the last slot holds on
        if window.all():
            start = scenario.first_slot + i * slot
            finish = start + length * slot
            return None if request.deadline_us is not None and finish > request.deadline_us else (start, finish)
    return None
