# SPDX-License-Identifier: Apache-2.0
"""Bounds that no plan can beat, proven from prices on links (Lagrangian duality).

Any prices >= 0 give a valid bound, so a solver that stopped half-way, or whose answer is slightly infeasible, does no harm: each
request pays at least the cost of its volume in its cheapest intervals, and all together can pay no more than the value of the
links' capacity. Bounds use the mean free rate of each cell, or its maximum below a share, so changes of gamma that the expansion
omits only loosen a bound.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from broker.planners.optimal.expansion import Expansion
from broker.planners.optimal.programs import Rows
from broker.planners.optimal.solver import Flags, Floats, Ints

_STEPS = 40
_STEPS_ALONE = 16
_DUST = 1e-9  # relative to the result: the possible error of float sums of 1e6 terms


def congestion(expansion: Expansion, rows: Rows, prices: Floats, reached: float) -> float:
    """A lower bound on the largest booked share of any plan for all requests; `reached` is the share of some known plan.

    `prices`: for the whole capacity of each row's link during its interval.
    """
    prices = np.maximum(prices, 0.0)
    per_bit = prices / (expansion.whole[rows.link] * expansion.seconds[rows.interval])
    spent = cheapest(expansion, rows, per_bit, reached)
    if not prices.any() or np.isinf(spent).any():
        return 0.0
    wanted = float(spent.sum()) * (1 - _DUST)
    worth = prices / expansion.whole[rows.link]
    return _least_share(lambda share: float((worth * _room(expansion, rows, share)).sum()) >= wanted, reached)


def congestion_alone(expansion: Expansion, reached: float) -> float:
    """The same bound from each request alone: below this share its volume does not fit beside the existing bookings."""
    return _least_share(lambda share: bool(fits_alone(expansion, share).all()), reached, _STEPS_ALONE)


def _least_share(enough: Callable[[float], bool], reached: float, steps: int = _STEPS) -> float:
    """The smallest share that is enough, from below; `enough` must be monotonic."""
    low, high = 0.0, reached
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low


def weight(expansion: Expansion, rows: Rows, prices: Floats, weights: Floats) -> float:
    """An upper bound on the weight of requests served whole. `prices`: for one bit/s on the rows' links, in weight."""
    prices = np.maximum(prices, 0.0)
    per_bit = prices / np.maximum(expansion.seconds[rows.interval], 1e-12)
    spent = cheapest(expansion, rows, per_bit, np.inf)
    sold = float((prices * _room(expansion, rows, np.inf)).sum())
    return (sold + float(np.maximum(weights - spent, 0.0).sum())) * (1 + _DUST)


def completion(expansion: Expansion, rows: Rows, prices: Floats, weights: Floats, lateness: Floats) -> float | None:
    """A lower bound on the weighted time from `not_before` to the finish, in seconds, of any plan for all requests.

    The finish is at least the mean time of the bits plus half of the time that the volume takes at the highest possible rate.
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
        both = (rates[lane.request], float(lane.task.rate_max))
        rates[lane.request] = sum(both) if expansion.may_split[lane.request] else max(both)
    rates = np.minimum(rates, expansion.rate_caps)
    return expansion.volumes / np.maximum(rates, 1.0)


class _Pairs(NamedTuple):
    """Requests in the intervals of their windows: the most bits that each can send there, and the pair of each cell."""

    request: Ints
    bits: Floats
    of_cell: Ints
    open: Flags  # per cell: it has any room


def fits_alone(expansion: Expansion, share: float = np.inf) -> Flags:
    """Per request: False if its volume does not fit below `share` even without the other requests. True proves nothing."""
    pairs = _pairs(expansion, share)
    most = np.bincount(pairs.request, weights=pairs.bits, minlength=len(expansion.requests))
    fits: Flags = most >= expansion.volumes * (1 - 1e-6)
    return fits


def cheapest(expansion: Expansion, rows: Rows, per_bit: Floats, share: float, extra: Floats | None = None) -> Floats:
    """Per request: the minimum cost of its whole volume at `per_bit` on each row (and `extra` per bit on each cell).

    Its intervals are filled in order of price, each up to Rmax and the room of its lanes below `share`. Infinite if the volume
    still does not fit.
    """
    r = len(expansion.requests)
    price = np.bincount(rows.cell, weights=per_bit[rows.row], minlength=expansion.cells).astype(np.float64)
    if extra is not None:
        price += extra
    pairs = _pairs(expansion, share)
    least = np.full(len(pairs.request), np.inf)
    np.minimum.at(least, pairs.of_cell[pairs.open], price[pairs.open])
    least[pairs.bits <= 0] = 0.0  # nothing can be sent there, so the price does not matter
    order = np.lexsort((least, pairs.request))
    request, least, most = pairs.request[order], least[order], pairs.bits[order]
    before = np.cumsum(most) - most
    first = np.searchsorted(request, np.arange(r))
    offset = np.append(before, before[-1:] + most[-1:] if len(before) else 0.0)[first]
    volumes = expansion.volumes
    taken = np.clip(volumes[request] - (before - offset[request]), 0.0, most)
    carried = np.bincount(request, weights=taken, minlength=r)
    spent = np.bincount(request, weights=taken * least, minlength=r)
    return np.where(carried < volumes * (1 - 1e-6), np.inf, spent)


def _pairs(expansion: Expansion, share: float) -> _Pairs:
    """Lanes together carry the sum of their room, but no more than a link that all of them share, and no more than Rmax.

    A request that must not be split has at any instant only the capacity of its roomiest lane.
    """
    n = len(expansion.seconds)
    link, interval = expansion.entry_link, expansion.interval_of[expansion.entry_cell]
    room = np.full(expansion.cells, np.inf)
    np.minimum.at(room, expansion.entry_cell, _free(expansion, link, interval, share))
    keys, at = np.unique(expansion.request_of * n + expansion.interval_of, return_inverse=True)
    request = keys // max(n, 1)
    widest = np.zeros(len(keys))
    np.maximum.at(widest, at, room)
    together = np.where(expansion.may_split[request], np.bincount(at, weights=room, minlength=len(keys)), widest)
    most = np.minimum(together, expansion.rate_caps[request])
    # A link that is on as many lanes as the request has in the interval is on all of them.
    lanes = np.bincount(at, minlength=len(keys))
    on, passed, count = np.unique(at[expansion.entry_cell] * len(expansion.links) + link, return_index=True, return_counts=True)
    pair = on // max(len(expansion.links), 1)
    shared = count == lanes[pair]
    np.minimum.at(most, pair[shared], _free(expansion, link[passed[shared]], interval[passed[shared]], share))
    return _Pairs(request, most * expansion.seconds[keys % max(n, 1)], at, room > 0)


def _room(expansion: Expansion, rows: Rows, share: float) -> Floats:
    return _free(expansion, rows.link, rows.interval, share)


def _free(expansion: Expansion, link: Ints, interval: Ints, share: float) -> Floats:
    """An upper bound on the mean bit/s that the batch may book without a link above `share`, even if gamma changes in the interval."""
    room: Floats = np.minimum(
        np.maximum(share * expansion.whole[link] - expansion.booked_low[link, interval], 0.0), expansion.free_mean[link, interval]
    )
    return room
