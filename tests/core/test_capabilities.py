# SPDX-License-Identifier: Apache-2.0
"""What agents say they can do: whatever they say, it is read, and what is not understood says nothing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.core.capabilities import DEFAULT_RULES, Capabilities, ObserveRule

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_capabilities_are_read_whatever_they_are() -> None:
    junk: list[dict[str, Any] | None] = [None, {}, {"mechanisms": None}, {"mechanisms": [1, {}, {"name": 3}]}, {"mechanisms": "x"}]
    for said in junk:
        read = Capabilities.parse(said)
        assert (read.modes, read.mechanisms, read.why_not("htb")) == (None, None, None)
    read = Capabilities.parse({"mechanisms": ["pacing", {"name": "fq", "available": "yes"}], "modes": ["managed", 4]})
    assert read.available() == ["pacing"] and read.modes == frozenset({"managed"})
    assert read.why_not("pacing") is None and read.why_not("fq") and read.why_not("htb")


@given(st.dictionaries(st.sampled_from(["modes", "mechanisms", "observe", "cpus"]), JSON))
def test_no_json_is_too_odd(said: dict[str, Any]) -> None:
    read = Capabilities.parse(said)
    assert read.document == said and not read.differs(Capabilities.parse(said))


def test_what_is_no_rule_allows_nothing() -> None:
    assert Capabilities.parse({}).observe == Capabilities.parse(None).observe == DEFAULT_RULES
    odd: list[Any] = [
        None,
        "peer",
        [],
        [{}],
        [{"address": "peer", "source_ports": "x"}],
        [{"address": "300.0.0.0/8"}],
        [{"address": 3}],
    ]
    for said in odd:
        assert Capabilities.parse({"observe": said}).observe == ()
    rule = {"address": "192.0.2.0/24", "destination_ports": "5001-5010"}
    (read,) = Capabilities.parse({"observe": [rule, "junk"]}).observe
    assert read == ObserveRule("192.0.2.0/24", None, "5001-5010") and read.document() == rule


def test_reasons_that_are_worded_anew_make_no_difference() -> None:
    def said(available: bool, reason: str) -> Capabilities:
        return Capabilities.parse({"mechanisms": [{"name": "fq", "available": available, "reason": reason}], "cpus": 2})

    assert not said(False, "a").differs(said(False, "b"))
    assert said(False, "a").differs(said(True, "a")) and said(True, "").differs(Capabilities())
