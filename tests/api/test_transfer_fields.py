# SPDX-License-Identifier: Apache-2.0
"""A field of a transfer is spelled once, in `TransferSpec`: whoever adds one and forgets a place hears of it here."""

from dataclasses import fields, replace
from typing import Any, get_args

import orjson
import pytest

from broker.api import schemas
from broker.api.schemas import TransferChange, TransferOut, TransferRequest
from broker.api.transfer_fields import FORMS, read_patch, read_spec, show_spec
from broker.core.request import NO_OPTIONS, Options
from broker.core.transfer import Mode, State
from broker.core.transfer_spec import (
    FIXED_FIELDS,
    SPEC_FIELDS,
    FlowMatch,
    OnOverrun,
    OnTimeout,
    Payload,
    SignalKind,
    StartSignal,
    TransferSpec,
)
from broker.core.units import US_PER_S
from broker.store import transfers
from broker.store.tables import transfers as table
from broker.store.transfers import Transfer

# How a request is to be admitted is no property of the transfer that comes of it; its mode is, when the desk has chosen it.
OF_ADMISSION = {"hold", "mode", "preempt", "hosts_up_from"}
IN_REST = {form.name for form in FORMS.values()}

FULL = TransferSpec(
    source="A",
    destination="B",
    volume_bytes=10**9,
    duration_us=90 * US_PER_S,
    rate_max_bps=10**9,
    rate_min_bps=10**6,
    not_before_us=1_800_000_000 * US_PER_S,
    deadline_us=1_800_000_900 * US_PER_S,
    priority=3,
    best_effort=True,
    planner="fbls",
    project="climate",
    label="night run",
    payload=Payload("x.h5", "y.h5", True, False, FlowMatch("udp", "192.0.2.1", "5001", "6001-6010")),
    mechanism="htb",
    after="tr_1",
    signal=StartSignal(SignalKind.BROKER, US_PER_S // 2, OnTimeout.CANCEL, OnOverrun.FALLBACK),
    metadata={"run": {"number": 7}},
    options=Options(2, ("L1", "L2"), True, 30 * US_PER_S, 5),
)
BARE = TransferSpec("A", "B", 1, not_before_us=US_PER_S)


def record(spec: TransferSpec) -> Transfer:
    values: dict[str, Any] = {field.name: 1 if field.type == "int" else None for field in fields(Transfer)}
    values |= {"id": "tr_2", "spec": spec, "state": State.RESERVED, "mode": Mode.RESERVE, "segments": (), "owner": "me"}
    return Transfer(**values)


def test_every_field_differs_from_its_default_here() -> None:
    for full, default in ((FULL, BARE), (FULL.options, NO_OPTIONS)):
        alike = {field.name for field in fields(full) if getattr(full, field.name) == getattr(default, field.name)}
        assert alike <= {"source", "destination"}, "give it a value in FULL, so that the tests below see it"


def test_every_field_is_in_the_request_the_change_and_the_answer() -> None:
    assert set(TransferRequest.model_fields) == IN_REST | OF_ADMISSION
    assert set(TransferOut.model_fields) >= IN_REST
    assert set(TransferChange.model_fields) == {FORMS[name].name for name in SPEC_FIELDS - FIXED_FIELDS}


def test_every_field_has_a_column() -> None:
    missing = {field.name for field in fields(TransferSpec)} - set(table.c.keys())
    assert not missing, "name the column like the field"


@pytest.mark.parametrize("spec", [FULL, BARE])
def test_what_is_shown_is_read_again_as_the_same(spec: TransferSpec) -> None:
    shown = orjson.loads(orjson.dumps(show_spec(spec)))
    assert read_spec(TransferRequest.model_validate(shown)) == spec


def test_a_change_of_everything_gives_the_other_one() -> None:
    shown = orjson.loads(orjson.dumps(show_spec(FULL)))
    changes = {FORMS[name].name: shown[FORMS[name].name] for name in SPEC_FIELDS - FIXED_FIELDS}
    patch = read_patch(TransferChange.model_validate(changes))
    kept = {name: getattr(BARE, name) for name in FIXED_FIELDS}
    assert patch.apply(BARE) == replace(FULL, **kept)
    assert read_patch(TransferChange.model_validate({})).apply(FULL) == FULL


@pytest.mark.parametrize("spec", [FULL, BARE])
def test_a_row_gives_the_same_record(spec: TransferSpec) -> None:
    row = transfers.to_row(record(spec))
    kinds = [str(table.c[name].type) for name in transfers.COLUMNS]
    stored = [
        orjson.loads(value) if kind == "JSONB" and value is not None else value for kind, value in zip(kinds, row, strict=True)
    ]
    assert transfers.from_row(tuple(stored)) == record(spec)


def test_words_of_the_api_are_those_of_the_core() -> None:
    for name, words in (("kind", SignalKind), ("on_timeout", OnTimeout), ("on_overrun", OnOverrun)):
        assert set(get_args(schemas.StartSignal.model_fields[name].annotation)) == {str(word) for word in words}
    for body, inner in ((schemas.Payload, Payload), (schemas.FlowMatch, FlowMatch)):
        assert list(body.model_fields) == [field.name for field in fields(inner)]
        given = {name: field.default for name, field in body.model_fields.items()}
        assert given == {field.name: field.default for field in fields(inner)}
