# SPDX-License-Identifier: Apache-2.0
"""Every way to cut a few slots into rows: the oracle of limits on reprogramming."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise


def most_by(levels: tuple[int, ...], most: int, shortest: int) -> list[list[int]]:
    """[rows][slot]: the most (rate x slots) that so many rows carry up to a slot, each of at least `shortest` slots. Pauses are allowed."""

    @cache
    def carried(rows: int, end: int) -> int:
        if end == 0 or rows == 0:
            return 0
        best = carried(rows, end - 1)
        for begin in range(end - max(shortest, 1), -1, -1):
            best = max(best, carried(rows - 1, begin) + min(levels[begin:end]) * (end - begin))
        return best

    return [[carried(rows, end) for end in range(len(levels) + 1)] for rows in range(most + 1)]


def by_trying(levels: tuple[int, ...], need: int, most: int, shortest: int) -> int | None:
    """The earliest end of `need` (rate x slots): the last row may be short."""
    before = most_by(levels, most - 1, shortest)[-1]
    for end in range(1, len(levels) + 1):
        for begin in range(end):
            if before[begin] + min(levels[begin:end]) * (end - begin) >= need:
                return end
    return None


def fillings(length: int, most: int, shortest: int) -> Iterator[list[int]]:
    """Every way to cut [0, length) into rows, by their ends."""
    for count in range(1, most + 1):
        for inner in combinations(range(1, length), count - 1):
            bounds = [0, *inner, length]
            if all(b - a >= shortest for a, b in pairwise(bounds[:-1])):
                yield bounds
