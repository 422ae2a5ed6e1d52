# SPDX-License-Identifier: Apache-2.0
"""Step functions over time for measuring: what a link carries, and its integral between any two instants.

Floats, because bits times microseconds outgrow 64 bits; nothing is planned on them.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from broker.core.plan import Plan
from broker.core.units import US_PER_S
from broker.simulate.distributions import Float64Array


class Steps(NamedTuple):
    """`bps[i]` from `begin_us[i]` to `begin_us[i + 1]`; nothing before the first, and the last one is 0."""

    begin_us: Float64Array
    bps: Float64Array

    @property
    def peak_bps(self) -> float:
        """The highest rate, leaving out rates that last for no time."""
        lasting = np.append(np.diff(self.begin_us) > 0, True)
        return float(self.bps[lasting].max(initial=0.0))

    def bits(self, instants_us: Float64Array) -> Float64Array:
        """Bits carried between each of the instants and the next."""
        carried = np.concatenate(([0.0], np.cumsum(self.bps[:-1] * np.diff(self.begin_us)))) / US_PER_S
        return np.diff(np.interp(instants_us, self.begin_us, carried))


def carried_by(plans: Iterable[Plan]) -> dict[str, Steps]:
    """What each link that is used carries."""
    rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for plan in plans:
        for begin, end, rate, path in plan.segments:
            for link_id in path:
                rows[link_id].append((begin, end, rate))
    return {link_id: _sum(np.array(table, np.int64)) for link_id, table in rows.items()}


def _sum(table: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Steps:
    instants = np.concatenate((table[:, 0], table[:, 1]))
    changes = np.concatenate((table[:, 2], -table[:, 2]))
    unique, where = np.unique(instants, return_inverse=True)
    deltas = np.zeros(len(unique), np.int64)
    np.add.at(deltas, where, changes)
    return Steps(unique.astype(np.float64), np.cumsum(deltas).astype(np.float64))
