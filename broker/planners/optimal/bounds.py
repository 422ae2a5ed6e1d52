# SPDX-License-Identifier: Apache-2.0
"""Bounds that no plan can beat, proven from prices on links (Lagrangian duality).

Any prices >= 0 prove something, so a solver that stopped half-way, or whose answer is a little infeasible, is no reason for doubt: each
request pays at least what its volume costs in its cheapest intervals, and all together can pay no more than what the links have to sell.
Cells of the expansion are taken at their roomiest here, so what is passed over in it only loosens a bound.
"""

import numpy as np

from broker.planners.optimal.expansion import Expansion
from broker.planners.optimal.programs import Rows
from broker.planners.optimal.solver import Floats

_STEPS = 60
_DUST = 1e-9  # of the result: what float sums of 1e6 terms may be wrong by


def congestion(expansion: Expansion, rows: Rows, prices: Floats, reached: float) -> float | None:
    """No plan for all requests books less than this share at its fullest; `reached` is a share that some plan reaches.

    None: nothing is proven. Infinity is not answered; whether the requests fit at all is the planner's question.
    """
    prices = np.maximum(prices, 0.0)
    if not prices.any():
        return None
    per_bit = prices / (expansion.whole[rows.link] * expansion.seconds[rows.interval])
    spent = cheapest(expansion, rows, per_bit, reached)
    if np.isinf(spent).any():
        return None
    wanted = float(spent.sum()) * (1 - _DUST)
    worth = per_bit * expansion.seconds[rows.interval]
    low, high = 0.0, reached
    if float((worth * _room(expansion, rows, high)).sum()) <= wanted:
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if float((worth * _room(expansion, rows, middle)).sum()) < wanted:
            low = middle
        else:
            high = middle
    return low


def weight(expansion: Expansion, rows: Rows, prices: Floats, weights: Floats) -> float:
    """No plan serves more than this of the requests' weights whole. `prices`: of one bit/s on the rows' links, in weight."""
    prices = np.maximum(prices, 0.0)
    per_bit = prices / np.maximum(expansion.seconds[rows.interval], 1e-12)
    spent = cheapest(expansion, rows, per_bit, np.inf)
    sold = float((prices * _room(expansion, rows, np.inf)).sum())
    return (sold + float(np.maximum(weights - spent, 0.0).sum())) * (1 + _DUST)


def completion(expansion: Expansion, rows: Rows, prices: Floats, weights: Floats, lateness: Floats) -> float | None:
    """No plan for all requests has less weighted time from `not_before` to the finish, in seconds.

    The finish is at least the mean time of the bits plus half of what the volume takes at the highest rate possible.
    """
    prices = np.maximum(prices, 0.0)
    per_bit = prices / np.maximum(expansion.seconds[rows.interval], 1e-12)
    spent = cheapest(expansion, rows, per_bit, np.inf, lateness / expansion.volumes[expansion.request_of])
    if np.isinf(spent).any():
        return None
    sold = float((prices * _room(expansion, rows, np.inf)).sum())
    fastest = shortest_times(expansion)
    together = float((spent + weights * fastest / 2).sum()) - sold
    return max(together - abs(together) * _DUST, float((weights * fastest).sum()) * (1 - _DUST), 0.0)


def shortest_times(expansion: Expansion) -> Floats:
    """Seconds that each request needs at the highest rate that its lanes and Rmax allow together."""
    rates = np.zeros(len(expansion.requests))
    for lane in expansion.lanes:
        rates[lane.request] += lane.task.rate_max
    rates = np.minimum(rates, expansion.rate_caps)
    return expansion.volumes / np.maximum(rates, 1.0)


def cheapest(expansion: Expansion, rows: Rows, per_bit: Floats, share: float, extra: Floats | None = None) -> Floats:
    """Per request: the least that its whole volume can cost at `per_bit` on each row (and `extra` per bit on each cell).

    Its intervals are filled in order of price, each with no more than Rmax and what its lanes have room for below `share`. Infinite
    where the volume does not fit even so.
    """
    n, r = len(expansion.seconds), len(expansion.requests)
    price = np.bincount(rows.cell, weights=per_bit[rows.row], minlength=expansion.cells)
    if extra is not None:
        price = price + extra
    room = np.full(expansion.cells, np.inf)
    np.minimum.at(room, expansion.entry_cell, _room_of_entries(expansion, share))
    pairs, at = np.unique(expansion.request_of * n + expansion.interval_of, return_inverse=True)
    least = np.full(len(pairs), np.inf)
    np.minimum.at(least, at, price)
    request, interval = pairs // n, pairs % n
    most = (
        np.minimum(np.bincount(at, weights=room, minlength=len(pairs)), expansion.rate_caps[request]) * expansion.seconds[interval]
    )
    order = np.lexsort((least, request))
    request, least, most = request[order], least[order], most[order]
    before = np.cumsum(most) - most
    first = np.searchsorted(request, np.arange(r))
    offset = np.append(before, before[-1:] + most[-1:] if len(before) else 0.0)[first]
    volumes = expansion.volumes
    taken = np.clip(volumes[request] - (before - offset[request]), 0.0, most)
    carried = np.bincount(request, weights=taken, minlength=r)
    spent = np.bincount(request, weights=taken * least, minlength=r)
    return np.where(carried < volumes * (1 - 1e-6), np.inf, spent)


def _room(expansion: Expansion, rows: Rows, share: float) -> Floats:
    """bit/s that the batch may book on each row without taking it above `share`: at most, wherever gamma changes inside the interval."""
    booked = expansion.booked_low[rows.link, rows.interval]
    free = expansion.free_mean[rows.link, rows.interval]
    return np.minimum(np.maximum(share * expansion.whole[rows.link] - booked, 0.0), free)


def _room_of_entries(expansion: Expansion, share: float) -> Floats:
    link, interval = expansion.entry_link, expansion.interval_of[expansion.entry_cell]
    free = expansion.free_mean[link, interval]
    return np.minimum(np.maximum(share * expansion.whole[link] - expansion.booked_low[link, interval], 0.0), free)
