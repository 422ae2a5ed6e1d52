# SPDX-License-Identifier: Apache-2.0
"""Brute-force oracles: gamma(t) as one number per microsecond, and planning as counting slots. Slow, short, and written from the paper
and the design, not from the code under test."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import lcm

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from broker.core.calendar import DISTANT_PAST_US, Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan
from broker.core.request import Request

MICROBITS_PER_BYTE = 8_000_000

# A failing case prints its blob (@reproduce_failure); compiled code makes the first case slow, so there is no deadline.
CASES = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# Every run draws new cases, so CI need not draw all of them every time: `make test EFFORT=100` does.
EFFORT_PERCENT = int(os.environ.get("BWB_TEST_EFFORT", "25"))


def cases(number: int) -> settings:
    return settings(CASES, max_examples=max(number * EFFORT_PERCENT // 100, 5))


def histories(number: int) -> settings:
    """Of a state machine on a database. Few and long ones: each begins with a database and two desks, and ends with both.

    A database makes shrinking a matter of minutes, so a failing history is printed as it is.
    """
    return settings(
        max_examples=max(number * EFFORT_PERCENT // 100, 2), stateful_step_count=45, deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate,),
    )  # fmt: skip


@dataclass(frozen=True)
class GridLink:
    """A link whose gamma is `levels[0]` before `base_us`, `levels[i]` in microsecond base + i, and `levels[-1]` afterwards."""

    id: str
    base_us: int
    levels: np.ndarray
    channel_bps: int | None
    slot_us: int

    def link(self, source: str, target: str) -> Link:
        return Link(self.id, source, target, max(int(self.levels.max()), 1), channel_bps=self.channel_bps, slot_us=self.slot_us)

    def calendar(self) -> Calendar:
        changes = np.flatnonzero(np.diff(self.levels)) + 1
        steps = [(self.base_us + i, int(self.levels[i])) for i in changes.tolist()]
        return Calendar([(DISTANT_PAST_US, int(self.levels[0])), *steps])

    def gamma(self, begin_us: int, end_us: int) -> np.ndarray:
        """One value per microsecond of [begin, end)."""
        at = np.clip(np.arange(begin_us, end_us) - self.base_us, 0, len(self.levels) - 1)
        return self.levels[at]


@dataclass(frozen=True)
class Scenario:
    """A line of links N0 -> N1 -> ..., a request along all of it, and what the request means in slots."""

    links: tuple[GridLink, ...]
    request: Request

    @property
    def network(self) -> Network:
        return Network(link.link(f"N{i}", f"N{i + 1}") for i, link in enumerate(self.links))

    @property
    def calendars(self) -> dict[str, Calendar]:
        return {link.id: link.calendar() for link in self.links}

    @property
    def slot(self) -> int:
        return lcm(*(link.slot_us for link in self.links))

    @property
    def channel(self) -> int:
        return lcm(*(link.channel_bps or 1 for link in self.links))

    @property
    def first_slot(self) -> int:
        """The first boundary at or after not_before."""
        return -(-self.request.not_before_us // self.slot) * self.slot

    @property
    def settled_us(self) -> int:
        """A boundary after which no gamma changes any more."""
        last = max(link.base_us + len(link.levels) for link in self.links)
        return -(-max(last, self.first_slot) // self.slot) * self.slot

    def slots(self, end_us: int) -> np.ndarray:
        """Free rate of the path in each slot from the first one to `end_us`: the least in the slot, on any link."""
        gamma = np.min([link.gamma(self.first_slot, end_us) for link in self.links], axis=0)
        return gamma.reshape(-1, self.slot).min(axis=1)

    def usable(self, levels: np.ndarray) -> np.ndarray:
        """What VBLS may book at these free rates: whole channels, at most Rmax, nothing below Rmin."""
        ceiling = levels if self.request.rate_max_bps is None else np.minimum(levels, self.request.rate_max_bps)
        rates = np.maximum(ceiling, 0) // self.channel * self.channel
        return np.where(rates < (self.request.rate_min_bps or 0), 0, rates)

    def earliest_finish(self) -> int | None:
        """Count slots until the volume is through; None when that never happens."""
        assert self.request.volume_bytes is not None
        need = self.request.volume_bytes * MICROBITS_PER_BYTE
        end = self.settled_us + self.slot
        carried = np.cumsum(self.usable(self.slots(end))) * self.slot
        if carried[-1] >= need:
            return int(self.first_slot + (np.argmax(carried >= need) + 1) * self.slot)
        per_slot = int(carried[-1] - (carried[-2] if len(carried) > 1 else 0))
        if per_slot == 0:
            return None
        return int(end + -(-(need - int(carried[-1])) // per_slot) * self.slot)

    def most_bytes(self, deadline_us: int) -> int:
        end = deadline_us // self.slot * self.slot
        if end <= self.first_slot:
            return 0
        return int(self.usable(self.slots(end)).sum()) * self.slot // MICROBITS_PER_BYTE


def plan_is_right(scenario: Scenario, plan: Plan) -> bool:
    """Every rule of a plan, one microsecond at a time."""
    request, links = scenario.request, {link.id: link for link in scenario.links}
    assert request.volume_bytes is not None
    path = tuple(links)
    moments: list[tuple[int, int]] = []  # (microsecond, rate)
    for begin, end, rate, along in plan.segments:
        if along != path or begin >= end or begin % scenario.slot or end % scenario.slot:
            return False
        moments.extend((moment, rate) for moment in range(begin, end))
    instants = [moment for moment, _ in moments]
    rates = np.array([rate for _, rate in moments], np.int64)
    if not moments or any(a >= b for a, b in pairwise(instants)):
        return False
    if instants[0] < request.not_before_us or (request.deadline_us is not None and instants[-1] >= request.deadline_us):
        return False
    if (rates < max(request.rate_min_bps or 0, 1)).any() or (rates % scenario.channel).any():
        return False
    if request.rate_max_bps is not None and (rates > request.rate_max_bps).any():
        return False
    for link in links.values():
        if any(rate > int(link.gamma(moment, moment + 1)[0]) for moment, rate in moments):
            return False
    needed = request.volume_bytes * MICROBITS_PER_BYTE
    # One slot less, at the end or at the beginning, would not do.
    return int(rates.sum()) >= needed > min(int(rates[: -scenario.slot].sum()), int(rates[scenario.slot :].sum()))


# --- strategies -----------------------------------------------------------------------------------------------------------------

# One byte is eight microseconds at 1 Mb/s: small numbers of both make plans of a few slots; the odd ones do not come out even.
rates = st.one_of(st.integers(1, 20).map(lambda mega: mega * 1_000_000), st.integers(200_000, 20_000_000))
levels = st.one_of(st.just(0), rates, rates, st.integers(-5_000_000, 0))


@st.composite
def grid_links(draw: st.DrawFn, index: int, base_us: int, channels: Sequence[int | None]) -> GridLink:
    runs = draw(st.lists(st.tuples(st.integers(1, 12), levels), min_size=1, max_size=24))
    return GridLink(
        id=f"L{index}",
        base_us=base_us + draw(st.sampled_from([0, 0, 0, -7, 13])),  # links often change together
        levels=np.repeat([level for _, level in runs], [length for length, _ in runs]).astype(np.int64),
        channel_bps=draw(st.sampled_from(channels)),
        slot_us=draw(st.sampled_from([1, 1, 1, 2, 3, 5])),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    base_us = draw(st.sampled_from([0, -100, 1_767_225_600_000_000]))
    channels: list[int | None] = draw(st.sampled_from([[None], [None, 1_000_000, 3_000_000], [None, 700_001]]))
    links = tuple(draw(grid_links(i, base_us, channels)) for i in range(draw(st.integers(1, 3))))
    not_before = base_us + draw(st.integers(-30, 150))
    low, high = sorted((draw(rates), draw(rates)))
    request = Request(
        id="r",
        source="N0",
        destination=f"N{len(links)}",
        volume_bytes=draw(st.integers(1, 120)),
        not_before_us=not_before,
        rate_max_bps=draw(st.sampled_from([None, high])),
        rate_min_bps=draw(st.sampled_from([None, None, low])),
        deadline_us=draw(st.one_of(st.none(), st.integers(1, 300).map(lambda after: not_before + after))),
    )
    return Scenario(links, request)


def scattered(seed: int) -> Scenario:
    """A busy scenario from one seed: what hypothesis draws shrinks well, but is seldom busy."""
    random = np.random.default_rng(seed)
    base_us = int(random.choice([0, -100, 1_767_225_600_000_000]))
    channels = [None, None, 1_000_000, 3_000_000]
    links = []
    for i in range(int(random.integers(1, 4))):
        runs = int(random.integers(5, 40))
        free = np.repeat(random.integers(-1, 6, runs) * 1_000_000, random.integers(1, 9, runs)).astype(np.int64)
        slot = int(random.choice([1, 1, 2, 3, 5]))
        links.append(GridLink(f"L{i}", base_us, free, channels[random.integers(0, 4)], slot))
    not_before = base_us + int(random.integers(-10, 100))
    return Scenario(
        tuple(links),
        request_over(
            links,
            volume_bytes=int(random.integers(1, 40)),
            not_before_us=not_before,
            rate_max_bps=[None, 3_000_000, 4_500_000][random.integers(0, 3)],
            rate_min_bps=[None, None, 2_000_000][random.integers(0, 3)],
            deadline_us=[None, None, not_before + int(random.integers(1, 200))][random.integers(0, 3)],
        ),
    )


@st.composite
def plannable(draw: st.DrawFn) -> Scenario:
    """Scenarios that have a plan, by the oracle, often with a deadline that is just met."""
    scenario = draw(scenarios())
    links = tuple(replace(link, levels=np.append(link.levels, 20_000_000)) for link in scenario.links)
    high = draw(st.integers(3_000_000, 20_000_000))
    low = draw(st.integers(1, high // 2))  # a rate of at least this remains of `high` in whole channels
    request = replace(
        scenario.request,
        rate_max_bps=draw(st.sampled_from([None, high])),
        rate_min_bps=draw(st.sampled_from([None, low])),
        deadline_us=None,
    )
    finish = Scenario(links, request).earliest_finish()
    assert finish is not None
    slack = draw(st.sampled_from([None, 0, 0, 1, 20]))
    return Scenario(links, replace(request, deadline_us=None if slack is None else finish + slack))


def crowded(seed: int, n_links: int, changes: int, slot_us: int = 1) -> tuple[GridLink, ...]:
    """Links with about `changes` change points each, all from one seed: longer than the first cut of a path's profile."""
    random = np.random.default_rng(seed)
    return tuple(
        GridLink(
            f"L{i}",
            1_000 * i,
            np.repeat(random.integers(-2, 12, changes) * 1_000_003, random.integers(1, 6, changes)).astype(np.int64),
            None,
            slot_us,
        )
        for i in range(n_links)
    )


any_scenarios = st.one_of(scenarios(), plannable(), st.integers(0, 2**32 - 1).map(scattered))


def request_over(links: Sequence[GridLink], **fields: object) -> Request:
    base = {"id": "r", "source": "N0", "destination": f"N{len(links)}", "volume_bytes": 1, "not_before_us": 0}
    return Request(**(base | fields))  # type: ignore[arg-type]
