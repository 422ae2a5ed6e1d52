# SPDX-License-Identifier: Apache-2.0
"""Instantaneous fair sharing as a fluid model: max-min fair rates over a network, recomputed at every change.

This models an ideal transport protocol (Soudan, Guillier, Primet 2007, RR-6205, sections 3.1 and 3.3) with the integers of a plan:
rates in whole bit/s and whole channels, finishes rounded up to microseconds and slots, never more than gamma. Filling is
progressive (Bertsekas and Gallager 1992, section 6.5.2): the link with the smallest share per flow fixes the rates of its flows
first, and capacity left over by rounding goes to the flows that began first. No flow could get more without taking from a flow that
has no more.

A flow whose share is below its minimum rate (`rate_min`, a channel, 1 bit/s) waits until there is room; the flow that began last
waits first.
"""

# ruff: noqa: PLR0912, PLR0915 - one event after the other belongs in one loop

from collections import defaultdict
from collections.abc import Sequence
from math import lcm
from typing import NamedTuple

import numpy as np

from broker.core.calendar import Calendar
from broker.core.scans import Int64Array, compiled, index_at, time_needed, volume_in
from broker.core.units import FOREVER_US, MAX_SLOT_US, MAX_TIME_US, round_up
from broker.planners.signature import Calendars

_FOREVER = FOREVER_US
_LATEST = MAX_TIME_US
_MILLION = 1_000_000


class Flow(NamedTuple):
    """A volume to be moved over `path` from `begin_us` on. `rate_max` (bit/s, above 0) is a multiple of `channel`."""

    path: tuple[str, ...]
    begin_us: int
    bits: int
    rate_max: int
    rate_min: int = 0
    channel: int = 1
    slot: int = 1


class Share(NamedTuple):
    """The share of one flow: rows (begin_us, end_us, rate_bps) ordered by time, and its finish (None: never).

    Flows that share links, directly or through others, change their rates together, on multiples of `grid_us`: the least common
    multiple of their slots; within one such interval the minimum of gamma counts. If it exceeds a day nothing is shared, and `rows`
    is empty.
    """

    rows: Int64Array
    finish_us: int | None
    grid_us: int


def share_fairly(flows: Sequence[Flow], calendars: Calendars) -> list[Share]:
    """The share of each flow, in the order of `flows`; among equals, the first one in this order is served first.

    The rows of all flows together fit into the free capacity of the calendars, which are only read.
    """
    shares: list[Share] = [Share(np.empty((0, 3), np.int64), None, 0)] * len(flows)
    for members in _neighbourhoods(flows):
        grid = lcm(*(flows[i].slot for i in members))
        together = _share([flows[i] for i in members], calendars, grid)
        for i, share in zip(members, together, strict=True):
            shares[i] = share
    return shares


def _neighbourhoods(flows: Sequence[Flow]) -> list[list[int]]:
    """Sets of indices of flows that share links, directly or through others; the sets are independent of each other."""
    parent: dict[str, str] = {}

    def root(link: str) -> str:
        while parent.setdefault(link, link) != link:
            parent[link] = parent[parent[link]]
            link = parent[link]
        return link

    for flow in flows:
        first = root(flow.path[0])
        for link in flow.path[1:]:
            parent[root(link)] = first
    sets: dict[str, list[int]] = defaultdict(list)
    for i, flow in enumerate(flows):
        sets[root(flow.path[0])].append(i)
    return list(sets.values())


def _share(flows: Sequence[Flow], calendars: Calendars, grid: int) -> list[Share]:
    if grid > MAX_SLOT_US:
        return [Share(np.empty((0, 3), np.int64), None, grid)] * len(flows)
    numbers = {link: i for i, link in enumerate(dict.fromkeys(link for flow in flows for link in flow.path))}
    begins, bits, caps, leasts, channels, slots = (
        np.array(column, np.int64)
        for column in zip(
            *((round_up(f.begin_us, grid), f.bits, f.rate_max, max(f.rate_min, f.channel, 1), f.channel, f.slot) for f in flows),
            strict=True,
        )
    )
    path_at = np.cumsum([0] + [len(flow.path) for flow in flows], dtype=np.int64)
    path_links = np.array([numbers[link] for flow in flows for link in flow.path], np.int64)
    gamma_at, gamma_times, gamma_free = _gammas([calendars[link] for link in numbers], int(begins.min()))
    arrivals = np.argsort(begins, kind="stable")
    # The order in which a link fixes the rates of its flows: coarse channels first, so that finer ones fill the gaps; late flows
    # before early.
    turns = np.empty(len(flows), np.int64)
    turns[np.lexsort((-np.argsort(arrivals), -channels))] = np.arange(len(flows))
    rows, finishes = _fill_over_time(
        path_at, path_links, begins, bits, caps, leasts, channels, slots, arrivals, turns, gamma_at, gamma_times, gamma_free, grid
    )
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    bounds = np.searchsorted(rows[:, 0], np.arange(len(flows) + 1)).tolist()
    return [
        Share(rows[bounds[i] : bounds[i + 1], 1:], None if finish > _LATEST else finish, grid)
        for i, finish in enumerate(finishes.tolist())
    ]


def _gammas(calendars: Sequence[Calendar], begin_us: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The steps of all links, concatenated, from the one that holds at `begin_us` on, and the offset of each link."""
    first = [index_at(calendar.times, calendar.n, begin_us) for calendar in calendars]
    at = np.cumsum([0] + [calendar.n - i for calendar, i in zip(calendars, first, strict=True)], dtype=np.int64)
    times = np.concatenate([calendar.times[i : calendar.n] for calendar, i in zip(calendars, first, strict=True)])
    free = np.concatenate([calendar.free[i : calendar.n] for calendar, i in zip(calendars, first, strict=True)])
    return at, times, free


@compiled
def _insert(ordered: Int64Array, count: int, keys: Int64Array, item: int) -> None:
    """Insert `item` into `ordered[:count]`, ascending by key, behind equal ones."""
    k = count
    while k > 0 and keys[ordered[k - 1]] > keys[item]:
        ordered[k] = ordered[k - 1]
        k -= 1
    ordered[k] = item


@compiled
def _fix_rate(
    flow: int, rate: int, rates: Int64Array, path_at: Int64Array, path_links: Int64Array, left: Int64Array, open_flows: Int64Array
) -> None:
    rates[flow] = rate
    for k in range(path_at[flow], path_at[flow + 1]):
        left[path_links[k]] -= rate
        open_flows[path_links[k]] -= 1


@compiled
def _fill(
    by_turn: Int64Array,
    by_cap: Int64Array,
    active: int,
    path_at: Int64Array,
    path_links: Int64Array,
    caps: Int64Array,
    leasts: Int64Array,
    channels: Int64Array,
    left: Int64Array,
    binds: Int64Array,
    rates: Int64Array,
) -> bool:
    """Max-min fair rates of the active flows. `left`: on entry the free capacity of each link, on return the remaining capacity.

    `binds[l]` becomes 1 if more capacity on link l would change a rate. Returns True if some flow waits.
    """
    links = len(left)
    open_flows = np.zeros(links, np.int64)
    for j in range(active):
        flow = by_turn[j]
        rates[flow] = -1
        for k in range(path_at[flow], path_at[flow + 1]):
            open_flows[path_links[k]] += 1
    member_at = np.zeros(links + 1, np.int64)
    for link in range(links):
        binds[link] = 0
        member_at[link + 1] = member_at[link] + open_flows[link]
    members = np.empty(member_at[links], np.int64)
    for j in range(active):
        flow = by_turn[j]
        for k in range(path_at[flow], path_at[flow + 1]):
            members[member_at[path_links[k]]] = flow
            member_at[path_links[k]] += 1
    for link in range(links, 0, -1):
        member_at[link] = member_at[link - 1]
    member_at[0] = 0

    waits = False
    capped = 0
    while True:
        level, tightest = np.int64(_FOREVER), -1
        for link in range(links):
            if open_flows[link] > 0 and left[link] // open_flows[link] < level:
                level, tightest = left[link] // open_flows[link], link
        if tightest < 0:
            break
        # Flows whose maximum is at or below the level get it, which lowers no other link's level.
        settled = False
        while capped < active and caps[by_cap[capped]] <= level:
            flow = by_cap[capped]
            if rates[flow] < 0:
                _fix_rate(flow, caps[flow], rates, path_at, path_links, left, open_flows)
                settled = True
            capped += 1
        if settled:
            continue
        binds[tightest] = 1
        for k in range(member_at[tightest], member_at[tightest + 1]):
            flow = members[k]
            if rates[flow] >= 0:
                continue
            rate = caps[flow]
            for step in range(path_at[flow], path_at[flow + 1]):
                link = path_links[step]
                rate = min(rate, left[link] // open_flows[link])
            rate = rate // channels[flow] * channels[flow]
            if rate < leasts[flow]:
                _fix_rate(flow, 0, rates, path_at, path_links, left, open_flows)
                waits = True
                break  # the other flows get more: another link may be the tightest now
            _fix_rate(flow, rate, rates, path_at, path_links, left, open_flows)

    # Capacity left over by whole channels and waiting flows goes to flows that can use it, in order of begin.
    for j in range(active - 1, -1, -1):
        flow = by_turn[j]
        more = caps[flow] - rates[flow]
        for step in range(path_at[flow], path_at[flow + 1]):
            more = min(more, left[path_links[step]])
        more = more // channels[flow] * channels[flow]
        if more > 0 and rates[flow] + more >= leasts[flow]:
            rates[flow] += more
            for step in range(path_at[flow], path_at[flow + 1]):
                left[path_links[step]] -= more
    for j in range(active):
        flow = by_turn[j]
        for step in range(path_at[flow], path_at[flow + 1]):
            if rates[flow] < caps[flow] and left[path_links[step]] < channels[flow]:
                binds[path_links[step]] = 1
    return waits


@compiled
def _fill_over_time(
    path_at: Int64Array,
    path_links: Int64Array,
    begins: Int64Array,
    bits: Int64Array,
    caps: Int64Array,
    leasts: Int64Array,
    channels: Int64Array,
    slots: Int64Array,
    arrivals: Int64Array,
    turns: Int64Array,
    gamma_at: Int64Array,
    gamma_times: Int64Array,
    gamma_free: Int64Array,
    grid: int,
) -> tuple[Int64Array, Int64Array]:
    """Rows (flow, begin, end, rate), those of one flow ordered by time, and the finish of each flow (FOREVER_US: none).

    Between two events, on multiples of `grid`, all rates are constant. Events: a flow begins, a flow ends, gamma of a link in use changes.
    """
    flows, links = len(begins), len(gamma_at) - 1
    rows = np.empty((4 * flows + 16, 4), np.int64)
    count = 0
    finishes = np.full(flows, _FOREVER, np.int64)
    microbits = np.zeros(flows, np.int64)
    rates, since = np.zeros(flows, np.int64), np.zeros(flows, np.int64)
    programmed = np.zeros(flows, np.int64)  # the rate of each flow's current row; 0: none
    by_turn, by_cap = np.empty(flows, np.int64), np.empty(flows, np.int64)
    active, arrived = 0, 0
    users = np.zeros(links, np.int64)
    step = gamma_at[:-1].copy()
    usable, left = np.zeros(links, np.int64), np.zeros(links, np.int64)
    binds = np.zeros(links, np.int64)
    waits, stale = False, True

    now = begins[arrivals[0]]
    while True:
        while arrived < flows and begins[arrivals[arrived]] <= now:
            flow = arrivals[arrived]
            _insert(by_turn, active, turns, flow)
            _insert(by_cap, active, caps, flow)
            active += 1
            arrived += 1
            stale = True
            for k in range(path_at[flow], path_at[flow + 1]):
                users[path_links[k]] += 1
        if active == 0:
            if arrived == flows:
                break
            now = begins[arrivals[arrived]]
            continue

        # The free capacity of the links in use, and how long it is constant.
        until = np.int64(_FOREVER)
        for link in range(links):
            if users[link] == 0:
                continue
            last = gamma_at[link + 1] - 1
            while step[link] < last and gamma_times[step[link] + 1] <= now:
                step[link] += 1
            at = step[link]
            free = gamma_free[at]
            if at < last:
                end = gamma_times[at + 1] // grid * grid
                if end <= now:
                    end = now + grid
                    while at < last and gamma_times[at + 1] < end:
                        at += 1
                        free = min(free, gamma_free[at])
                until = min(until, end)
            free = max(free, 0)
            if free != usable[link]:
                # On a link that limits no flow, a change matters only if the link can no longer carry its current flows.
                left[link] += free - usable[link]
                usable[link] = free
                if binds[link] == 1 or left[link] < 0 or waits:
                    stale = True

        if stale:
            for link in range(links):
                left[link] = usable[link]
            waits = _fill(by_turn, by_cap, active, path_at, path_links, caps, leasts, channels, left, binds, rates)
            stale = False
            for j in range(active):
                flow = by_turn[j]
                if rates[flow] == programmed[flow]:
                    continue
                if programmed[flow] > 0:
                    if count == len(rows):
                        longer = np.empty((2 * count, 4), np.int64)
                        longer[:count] = rows
                        rows = longer
                    rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = flow, since[flow], now, programmed[flow]
                    count += 1
                since[flow], programmed[flow] = now, rates[flow]

        if arrived < flows:
            until = min(until, begins[arrivals[arrived]])
        for j in range(active):
            flow = by_turn[j]
            if rates[flow] > 0:
                end = now + time_needed(bits[flow], microbits[flow], rates[flow])
                finishes[flow] = -(-end // slots[flow]) * slots[flow]
                until = min(until, -(-end // grid) * grid)
        if until >= _LATEST:
            until = np.int64(_FOREVER)  # a flow that would end after the last representable instant does not end

        # Advance all flows to the next event; flows that end before it are removed.
        turn_kept, cap_kept = 0, 0
        for j in range(active):
            flow = by_turn[j]
            if rates[flow] > 0 and finishes[flow] <= min(until, _LATEST):
                if count == len(rows):
                    longer = np.empty((2 * count, 4), np.int64)
                    longer[:count] = rows
                    rows = longer
                rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = flow, since[flow], finishes[flow], rates[flow]
                count += 1
                stale = True
                bits[flow], microbits[flow] = 0, 0
                for k in range(path_at[flow], path_at[flow + 1]):
                    users[path_links[k]] -= 1
                continue
            by_turn[turn_kept] = flow
            turn_kept += 1
            finishes[flow] = _FOREVER
            if rates[flow] > 0 and until < _FOREVER:
                carried_bits, carried_microbits = volume_in(rates[flow], until - now)
                bits[flow] -= carried_bits
                microbits[flow] -= carried_microbits
                if microbits[flow] < 0:
                    microbits[flow] += _MILLION
                    bits[flow] -= 1
        for j in range(active):
            if bits[by_cap[j]] > 0 or microbits[by_cap[j]] > 0:
                by_cap[cap_kept] = by_cap[j]
                cap_kept += 1
        active = turn_kept
        if until >= _FOREVER:
            break
        now = until
    return rows[:count], finishes
