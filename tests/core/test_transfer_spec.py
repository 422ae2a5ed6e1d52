# SPDX-License-Identifier: Apache-2.0
"""A spec is frozen, its parts are parsed once, and a patch changes what it names."""

from dataclasses import FrozenInstanceError, replace

import pytest

from broker.core.request import NO_OPTIONS, Options
from broker.core.transfer_spec import FlowMatch, OnOverrun, OnTimeout, Payload, SignalKind, SpecPatch, StartSignal, TransferSpec
from broker.core.units import US_PER_S

SPEC = TransferSpec("A", "B", 10**9, deadline_us=90 * US_PER_S, label="x")


def test_it_is_frozen_in_all_its_parts() -> None:
    full = replace(SPEC, payload=Payload("x", match=FlowMatch()), signal=StartSignal())
    assert full.payload is not None and full.payload.match is not None and full.signal is not None
    for part, name in ((full, "label"), (full.payload, "path"), (full.payload.match, "address"), (full.signal, "kind")):
        with pytest.raises(FrozenInstanceError):
            setattr(part, name, None)
        assert not hasattr(part, "__dict__"), "slots: a misspelled name is an error"


def test_a_signal_is_parsed_to_integers_and_words() -> None:
    document = {"kind": "broker", "timeout_s": 0.25, "on_timeout": "cancel", "on_overrun": "fallback"}
    signal = StartSignal.parse(document)
    assert signal == StartSignal(SignalKind.BROKER, 250_000, OnTimeout.CANCEL, OnOverrun.FALLBACK)
    assert signal.document() == document
    assert StartSignal.parse(StartSignal().document()) == StartSignal()
    with pytest.raises(ValueError, match="word"):
        StartSignal.parse(document | {"kind": "word"})


def test_a_payload_of_an_earlier_version_says_less() -> None:
    assert Payload.parse({"path": "x"}) == Payload("x", overwrite=False, verify=True)
    assert Payload.parse({"match": {"source_ports": "5001"}}) == Payload(match=FlowMatch("tcp", None, "5001", None))


def test_a_patch_changes_what_it_names_and_nothing_else() -> None:
    patch = SpecPatch({"deadline_us": None, "priority": 2, "path": ("L1",), "most_segments": 3})
    assert "priority" in patch and "label" not in patch
    expected = replace(SPEC, deadline_us=None, priority=2, options=Options(path=("L1",), most_segments=3))
    assert patch.apply(SPEC) == expected
    assert SpecPatch({"split": True}).apply(expected).options == replace(expected.options, split=True)
    assert SpecPatch().apply(SPEC) == SPEC and SpecPatch().apply(SPEC).options is NO_OPTIONS
