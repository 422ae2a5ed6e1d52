# SPDX-License-Identifier: Apache-2.0
"""Limits on reprogramming against trying every plan there is: each way to cut a few microseconds into rows."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.core import reprogramming
from broker.core.reprogramming import Limits, earliest_rows, fullest_rows, max_in_rows
from tests.core.every_cut import by_trying, fillings
from tests.core.grid import cases

Row = tuple[int, int, int]
MEGA = 1_000_000


def rates_of(levels: list[int], slot: int = 1, begin: int = 0) -> np.ndarray:
    """Rows (begin, end, rate) of one rate per slot, as short as they come."""
    rows: list[list[int]] = []
    for i, level in enumerate(levels):
        if rows and rows[-1][2] == level:
            rows[-1][1] += slot
        else:
            rows.append([begin + i * slot, begin + (i + 1) * slot, level])
    return np.array(rows, np.int64)


def are_kept(rows: list[Row], limits: Limits) -> bool:
    merged: list[Row] = []
    for begin, end, rate in rows:
        assert begin < end
        assert not merged or merged[-1][1] <= begin
        if merged and merged[-1][1:] == (begin, rate):
            merged[-1] = (merged[-1][0], end, rate)
        else:
            merged.append((begin, end, rate))
    return limits.kept_by(merged)


levels_of = st.lists(st.sampled_from([0, 1, 2, 3, 5, 8]), min_size=1, max_size=12)
some_limits = st.tuples(st.sampled_from([None, 1, 2, 3, 4]), st.sampled_from([0, 0, 1, 2, 3, 4, 5]))


@cases(600)
@given(levels_of, some_limits, st.integers(1, 60), st.sampled_from([1, 1, 3]), st.sampled_from([0, -7, 10**15]))
@example([1, 2, 2, 1, 1], (None, 3), 7, 1, 0)
@example([0, 3, 3, 1, 5, 5, 2], (2, 2), 12, 1, 0)
@example([5, 5, 5, 5, 5, 2, 2, 0, 1, 1, 1, 1, 1], (None, 3), 30, 1, 0)  # [0, 4), [4, 7), [8, 12): 4 is no change point
def test_the_finish_is_the_earliest_of_all_plans(
    levels: list[int], limits: tuple[int | None, int], need: int, slot: int, begin: int
) -> None:
    most, shortest = limits
    begin *= slot
    kept = Limits(most, shortest * slot)
    rates = rates_of([level * MEGA for level in levels], slot, begin)
    rows = earliest_rows(rates, need * slot, kept, slot)  # MEGA bit/s carry one bit a microsecond
    finish = by_trying(tuple(levels), need, len(levels) if most is None else most, shortest)
    assert (None if rows is None else (rows[-1][1] - begin) // slot) == finish
    if rows is None:
        # The most that fits carries no bit more, and is itself through in time.
        bits = max_in_rows(rates, need * slot, kept, slot)
        assert bits < need * slot
        assert bits == 0 or earliest_rows(rates, bits, kept, slot) is not None
        assert earliest_rows(rates, bits + 1, kept, slot) is None
        return
    assert max_in_rows(rates, need * slot, kept, slot) == need * slot
    assert are_kept(rows, kept)
    for first, last, rate in rows:
        assert rate <= min(levels[(first - begin) // slot : -(-(last - begin) // slot)]) * MEGA
    carried = sum(rate * (last - first) for first, last, rate in rows)
    assert carried - rows[-1][2] * slot < need * slot * MEGA <= carried


@cases(400)
@given(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=9), some_limits, st.sampled_from([1, 4]))
def test_a_holding_time_is_filled_with_the_most_there_can_be(levels: list[int], limits: tuple[int | None, int], slot: int) -> None:
    most, shortest = limits
    kept = Limits(most, shortest * slot)
    rows = fullest_rows(rates_of(levels, slot), kept)
    assert (rows[0][0], rows[-1][1]) == (0, len(levels) * slot)
    assert all(a[1] == b[0] for a, b in pairwise(rows)), "no pause"
    assert are_kept(rows, kept)
    best = max(
        sum(min(levels[a:b]) * (b - a) for a, b in pairwise(bounds))
        for bounds in fillings(len(levels), len(levels) if most is None else most, shortest)
    )
    assert sum(rate * (end - begin) for begin, end, rate in rows) == best * slot


@cases(60)
@given(st.integers(0, 2**32 - 1), some_limits, st.floats(0.05, 1.0))
def test_cut_short_it_is_still_right(seed: int, limits: tuple[int | None, int], share: float) -> None:
    """With next to no memory, span and shifted instants, plans keep every limit; they are only later than they could be."""
    random = np.random.default_rng(seed)
    levels = np.repeat(random.integers(0, 6, 80), random.integers(1, 5, 80)).tolist()
    most, shortest = limits
    kept = Limits(most, shortest)
    rates = rates_of([level * MEGA for level in levels])
    need = max(1, int(share * sum(levels)))
    whole = earliest_rows(rates, need, kept, 1)
    with (
        patch.object(reprogramming, "_MAX_CELLS", 200),
        patch.object(reprogramming, "_LONGEST_SPAN", 16),
        patch.object(reprogramming, "_MAX_INSTANTS", 100),
    ):
        rows = earliest_rows(rates, need, kept, 1)
        filled = fullest_rows(rates_of([level + 1 for level in levels]), kept)
    assert are_kept(filled, kept)
    assert (filled[0][0], filled[-1][1]) == (0, len(levels))
    if rows is None:
        return
    assert whole is not None
    assert whole[-1][1] <= rows[-1][1]
    assert are_kept(rows, kept)
    assert all(rate <= min(levels[begin:end]) * MEGA for begin, end, rate in rows)
    carried = sum(rate * (end - begin) for begin, end, rate in rows)
    assert carried - rows[-1][2] < need * MEGA <= carried


@pytest.mark.parametrize("scale", [1, 10**5, 10**8])
@cases(60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5]))
def test_large_volumes_are_right_to_the_microsecond(scale: int, seed: int, most: int) -> None:
    """Up to an exabyte: the same plan at a thousand or a million times the rate, whatever its volumes are counted in."""
    random = np.random.default_rng(seed)
    levels = random.integers(0, 9, 30).tolist()
    need = int(random.integers(1, max(sum(levels) // 2, 2)))
    second = 10**8
    small = earliest_rows(rates_of([level * MEGA for level in levels], second), need * second, Limits(most, 0), 1)
    large = earliest_rows(rates_of([level * scale * MEGA for level in levels], second), need * second * scale, Limits(most, 0), 1)
    assert (small is None) == (large is None)
    if small is not None and large is not None:
        assert small[-1][1] == large[-1][1]
