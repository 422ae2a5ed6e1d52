# SPDX-License-Identifier: Apache-2.0
"""RR-6205, section 3.3: what of 1 Gb/s is left, layer by layer, at MTU 1500."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.goodput import IP_TCP_HEADER_BYTES, MAX_MTU_BYTES, MIN_MTU_BYTES, WIRE_OVERHEAD_BYTES, payload_rate
from tests.core.grid import cases

GIGABIT = 10**9


def test_the_papers_figures() -> None:
    ethernet = Fraction(1514, 1538) * GIGABIT  # without preamble, gap and check sequence
    ip = Fraction(1500, 1514) * ethernet
    payload = Fraction(1460, 1500) * ip
    assert [round(float(rate) / 1e6, 2) for rate in (ethernet, ip, payload)] == [984.40, 975.29, 949.28]
    # The paper's 975.30 and 949.29 carry its rounding on from layer to layer.
    r_eth = 984.40
    r_ip = round(1500 / 1514 * r_eth, 2)
    assert (r_ip, round(1460 / 1500 * r_ip, 2)) == (975.30, 949.29)
    assert payload_rate(GIGABIT, 1500) == int(payload) == 949_284_785


@pytest.mark.parametrize(("mtu", "bits_per_second"), [(None, GIGABIT), (9_000, 991_369_772), (576, 872_964_169)])
def test_other_frames(mtu: int | None, bits_per_second: int) -> None:
    assert payload_rate(GIGABIT, mtu) == bits_per_second


@cases(60)
@given(st.integers(1, 10**15), st.integers(MIN_MTU_BYTES, MAX_MTU_BYTES - 1))
def test_payload_is_never_rounded_up_and_larger_frames_carry_more(capacity: int, mtu: int) -> None:
    exact = Fraction(capacity * (mtu - IP_TCP_HEADER_BYTES), mtu + WIRE_OVERHEAD_BYTES)
    assert exact - 1 < payload_rate(capacity, mtu) <= exact
    assert payload_rate(capacity, mtu) <= payload_rate(capacity, mtu + 1) <= capacity
