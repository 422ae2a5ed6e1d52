# SPDX-License-Identifier: Apache-2.0
"""One path at a time for requests that must not be split, though the program would have them on several.

Two ways to choose, after either of which the program is solved again with what is left: in each interval the path that carries most
there, so that a request may change paths; or one path throughout, chosen request by request so that they keep out of each other's way.
"""

import numpy as np

from broker.planners.optimal.expansion import Expansion
from broker.planners.optimal.solver import Flags, Floats, Ints

_STEEPNESS = 8  # how much more a full link counts than an empty one: between the sum of loads (1) and the largest alone


def undecided(expansion: Expansion, rates: Floats) -> bool:
    """Does a request that must not be split send on two paths at once?"""
    single = ~expansion.may_split[expansion.request_of] & (rates > 0)
    pair = expansion.request_of[single] * len(expansion.seconds) + expansion.interval_of[single]
    return len(np.unique(pair)) < len(pair)


def by_interval(expansion: Expansion, rates: Floats) -> Flags:
    """Which cells to keep. Intervals in which nothing is sent keep the path that carries most in all."""
    sent = rates * expansion.seconds[expansion.interval_of]
    by_lane = np.bincount(expansion.lane_of, weights=sent, minlength=len(expansion.lanes))[expansion.lane_of]
    key = np.where(sent > 0, sent + by_lane.max(initial=0.0), by_lane)
    group = expansion.request_of * len(expansion.seconds) + expansion.interval_of
    # The largest key of each group, of equals the lane that comes first (the shortest path).
    order = np.lexsort((expansion.lane_of, -key, group))
    first = np.ones(len(order), bool)
    first[1:] = group[order][1:] != group[order][:-1]
    kept = expansion.may_split[expansion.request_of]
    kept[order[first]] = True
    return kept


def throughout(expansion: Expansion, rates: Floats) -> Flags:
    """Which cells to keep.

    Starts from the program's own loads and takes the requests in order of what they send: each puts all of it on that lane which fills
    links least, those counting most that are fullest. Twin links, over which a program splits evenly, are shared out by this.
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
    """The profile on a lane that is only open in these intervals: what it cannot carry elsewhere it carries here, evenly."""
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
