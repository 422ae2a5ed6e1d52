# SPDX-License-Identifier: Apache-2.0
"""One path at a time for requests that must not be split, if the program uses several.

There are two ways to choose, and after either the program is solved again with the remaining cells: in each interval the path that
carries most there, so that a request may change paths; or one path throughout, chosen request by request to avoid the load of the
others.
"""

import numpy as np

from broker.planners.optimal.expansion import Expansion
from broker.planners.optimal.solver import Flags, Floats, Ints

_STEEPNESS = 8  # exponent of the load: 1 would count the sum of loads, infinity only the largest one


def undecided(expansion: Expansion, rates: Floats) -> bool:
    """True if a request that must not be split sends on two paths at once."""
    single = ~expansion.may_split[expansion.request_of] & (rates > 0)
    pair = expansion.request_of[single] * len(expansion.seconds) + expansion.interval_of[single]
    return len(np.unique(pair)) < len(pair)


def by_interval(expansion: Expansion, rates: Floats) -> Flags:
    """The cells to keep, per cell. Intervals without traffic keep the path that carries most overall."""
    sent = rates * expansion.seconds[expansion.interval_of]
    by_lane = np.bincount(expansion.lane_of, weights=sent, minlength=len(expansion.lanes))[expansion.lane_of]
    key = np.where(sent > 0, sent + by_lane.max(initial=0.0), by_lane)
    group = expansion.request_of * len(expansion.seconds) + expansion.interval_of
    # The largest key of each group; among equals the first lane (the shortest path).
    order = np.lexsort((expansion.lane_of, -key, group))
    first = np.ones(len(order), bool)
    first[1:] = group[order][1:] != group[order][:-1]
    kept = expansion.may_split[expansion.request_of]
    kept[order[first]] = True
    return kept


def throughout(expansion: Expansion, rates: Floats) -> Flags:
    """The cells to keep, per cell.

    Starts from the loads of the program and takes the requests by decreasing volume sent: each moves all of it to the lane with the
    lowest cost, where fuller links cost more. This distributes requests over twin links, which a program loads evenly.
    """
    kept = expansion.may_split[expansion.request_of]
    first = np.searchsorted(expansion.lane_of, np.arange(len(expansion.lanes) + 1))
    lanes: list[list[int]] = [[] for _ in expansion.requests]
    for number, lane in enumerate(expansion.lanes):
        if first[number] < first[number + 1]:
            lanes[lane.request].append(number)
    load = expansion.booked_high.astype(np.float64)
    np.add.at(load, (expansion.entry_link, expansion.interval_of[expansion.entry_cell]), rates[expansion.entry_cell])
    sent = rates * expansion.seconds[expansion.interval_of]
    total = np.bincount(expansion.request_of, weights=sent, minlength=len(expansion.requests))
    for request in np.argsort(-total, kind="stable").tolist():
        own = lanes[request]
        if expansion.requests[request].options.split or not own:
            continue
        profile = np.zeros(len(expansion.seconds))
        for lane in own:
            cells = slice(first[lane], first[lane + 1])
            profile[expansion.interval_of[cells]] += rates[cells]
            load[np.ix_(expansion.lanes[lane].links, expansion.interval_of[cells])] -= rates[cells]
        choices = [_moved(expansion, profile, expansion.interval_of[first[lane] : first[lane + 1]]) for lane in own]
        costs = [_cost(expansion, load, lane, moved) for lane, moved in zip(own, choices, strict=True)]
        best = int(np.argmin(costs))
        load[expansion.lanes[own[best]].links] += choices[best]
        kept[first[own[best]] : first[own[best] + 1]] = True
    return kept


def _moved(expansion: Expansion, profile: Floats, intervals: Ints) -> Floats:
    """The profile moved to a lane with only these intervals; volume sent in other intervals is spread evenly over these."""
    moved = np.zeros_like(profile)
    moved[intervals] = profile[intervals]
    lost = float(((profile - moved) * expansion.seconds).sum())
    if lost > 0:
        moved[intervals] += lost / float(expansion.seconds[intervals].sum())
    return moved


def _cost(expansion: Expansion, load: Floats, lane: int, moved: Floats) -> float:
    links = expansion.lanes[lane].links
    whole = expansion.whole[links][:, None]
    before = np.maximum(load[links], 0.0) / whole
    return float((((before + moved / whole) ** _STEEPNESS - before**_STEEPNESS) * expansion.seconds).sum())
