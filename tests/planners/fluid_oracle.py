# SPDX-License-Identifier: Apache-2.0
"""Max-min fair sharing in exact fractions, slow and short: all rates rise together, and stop one after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from broker.core.calendar import Step


@dataclass
class Drop:
    """Something to be moved: `bits` over `path` from `begin` (microseconds) on, at `cap` bit/s at most."""

    path: tuple[str, ...]
    begin: int
    bits: int
    cap: int


def fair_rates(drops: Sequence[Drop], free: Mapping[str, int]) -> list[Fraction]:
    rates = [Fraction(0)] * len(drops)
    rising = set(range(len(drops)))
    while rising:
        room = [Fraction(drops[i].cap) - rates[i] for i in rising]
        for link, capacity in free.items():
            users = [i for i, drop in enumerate(drops) if link in drop.path]
            here = rising.intersection(users)
            if here:
                room.append((Fraction(max(capacity, 0)) - sum(rates[i] for i in users)) / len(here))
        rise = min(room)
        for i in rising:
            rates[i] += rise
        full = {
            link
            for link, capacity in free.items()
            if sum(rates[i] for i, d in enumerate(drops) if link in d.path) >= max(capacity, 0)
        }
        rising = {i for i in rising if rates[i] < drops[i].cap and full.isdisjoint(drops[i].path)}
    return rates


def fair_finishes(drops: Sequence[Drop], gammas: Mapping[str, Sequence[Step]]) -> list[Fraction | None]:
    """When each is through, in microseconds; None: never. `gammas`: steps in order of time, the first in the distant past."""
    left = [Fraction(drop.bits * 1_000_000) for drop in drops]
    finishes: list[Fraction | None] = [None] * len(drops)
    now = Fraction(min(drop.begin for drop in drops))
    changes = sorted({begin for steps in gammas.values() for begin, _ in steps} | {drop.begin for drop in drops})
    while True:
        here = [i for i, drop in enumerate(drops) if drop.begin <= now and left[i] > 0]
        free = {link: [rate for begin, rate in steps if begin <= now][-1] for link, steps in gammas.items()}
        rates = fair_rates([drops[i] for i in here], free)
        ends = [now + left[i] / rate for i, rate in zip(here, rates, strict=True) if rate > 0]
        ends += [Fraction(change) for change in changes if change > now][:1]
        if not ends:
            return finishes
        until = min(ends)
        for i, rate in zip(here, rates, strict=True):
            left[i] -= rate * (until - now)
            if left[i] == 0:
                finishes[i] = until
        now = until
