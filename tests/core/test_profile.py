# SPDX-License-Identifier: Apache-2.0
"""gamma of a path: right wherever a profile says that it may be trusted, whatever the length of the cuts."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.core import profile
from broker.core.profile import Profile, profile_between, profiles
from broker.core.units import FOREVER_US
from tests.core.grid import Scenario, any_scenarios, cases, crowded


def assert_right(found: Profile, scenario: Scenario, begin: int, end: int) -> None:
    expected = np.min([link.gamma(begin, end) for link in scenario.links], axis=0)
    steps = list(zip(found.times[: found.n].tolist(), found.free[: found.n].tolist(), strict=True))
    assert all(a[0] < b[0] and a[1] != b[1] for a, b in pairwise(steps)), "sorted and minimal"
    got = [[level for instant, level in steps if instant <= t][-1] for t in range(begin, end)]
    assert got == expected.tolist()


@cases(300)
@given(any_scenarios, st.integers(1, 200), st.integers(1, 5))
def test_every_profile_is_the_minimum_up_to_its_limit(scenario: Scenario, length: int, first_cut: int) -> None:
    begin = scenario.request.not_before_us
    path = [link.id for link in scenario.links]
    with patch.object(profile, "_FIRST_CUT", first_cut), patch.object(profile, "_NEXT_CUT", 2):
        found = list(profiles(path, scenario.calendars, begin, begin + length))
    limits = [each.limit_us for each in found]
    assert limits == sorted(set(limits)), "ever longer"
    assert limits[-1] == FOREVER_US
    for each in found:
        assert_right(each, scenario, begin, min(each.limit_us, begin + length))
    assert_right(profile_between(path, scenario.calendars, begin, begin + length), scenario, begin, begin + length)


def test_a_crowded_path_takes_several_cuts_and_a_single_link_none() -> None:
    links = crowded(seed=1, n_links=2, changes=6_000)
    calendars = {link.id: link.calendar() for link in links}
    sizes = [each.n for each in profiles(["L0", "L1"], calendars, 0, FOREVER_US)]
    assert sizes[0] < 600 < sizes[1] < sizes[2]
    (alone,) = profiles(["L0"], calendars, 0, FOREVER_US)
    assert alone.times is calendars["L0"].times, "no copy"
