# SPDX-License-Identifier: Apache-2.0
"""The fields of a transfer's spec in REST: how they are called there, read from a request or a change, and shown in an answer."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

from broker.api import schemas
from broker.core.request import NO_OPTIONS, Options
from broker.core.transfer_spec import Payload, SpecPatch, StartSignal, TransferSpec
from broker.core.units import US_PER_S, format_time


def microseconds(seconds: float) -> int:
    """Seconds as microseconds."""
    return round(seconds * US_PER_S)


def seconds(duration_us: int) -> float:
    """Whole ones as integers: 60, not 60.0."""
    return duration_us // US_PER_S if duration_us % US_PER_S == 0 else duration_us / US_PER_S


def _payload(body: schemas.Payload) -> Payload:
    return Payload.parse(body.model_dump())


def _signal(body: schemas.StartSignal) -> StartSignal:
    return StartSignal.parse(body.model_dump())


class _Form(NamedTuple):
    """`name`: in REST; `read`, `show`: to and from the inner value, where it is another than in REST. Null stays null."""

    name: str
    read: Callable[[Any], object] | None = None
    show: Callable[[Any], object] | None = None


_FORMS = {
    "duration_us": _Form("duration_s", microseconds, seconds),
    "not_before_us": _Form("not_before", None, format_time),
    "deadline_us": _Form("deadline", None, format_time),
    "payload": _Form("payload", _payload),
    "signal": _Form("signal", _signal, StartSignal.document),
    "path": _Form("path", tuple),
    "shortest_segment_us": _Form("shortest_segment_s", microseconds, seconds),
}
_SPEC = tuple(field.name for field in fields(TransferSpec) if field.name != "options")
_OPTIONS = tuple(field.name for field in fields(Options))
FORMS = {name: _FORMS.get(name, _Form(name)) for name in (*_SPEC, *_OPTIONS)}
_INNER = {form.name: name for name, form in FORMS.items()}

# At admission rate a loop over all fields would be felt: getters are compiled, and only what has another form is touched.
_body_spec = attrgetter(*(FORMS[name].name for name in _SPEC))
_body_options = attrgetter(*(FORMS[name].name for name in _OPTIONS))
_values, _options = attrgetter(*_SPEC), attrgetter(*_OPTIONS)
_NO_OPTIONS = _options(NO_OPTIONS)
_NAMES = tuple(form.name for form in FORMS.values())
_READ_SPEC = [(index, form.read) for index, name in enumerate(_SPEC) if (form := FORMS[name]).read is not None]
_READ_OPTIONS = [(index, form.read) for index, name in enumerate(_OPTIONS) if (form := FORMS[name]).read is not None]
_SHOW = [(index, form.show) for index, form in enumerate(FORMS.values()) if form.show is not None]
_NOT_BEFORE = _SPEC.index("not_before_us")


def read_spec(body: schemas.TransferRequest) -> TransferSpec:
    """What the body asks for. An index in `after` is kept: only the caller of this function sees the batch that it points into."""
    values = _converted(list(_body_spec(body)), _READ_SPEC)
    values[_NOT_BEFORE] = values[_NOT_BEFORE] or 0
    values.append(_read_options(body))
    return TransferSpec(*values)


def _read_options(body: schemas.TransferRequest) -> Options:
    values = _body_options(body)
    if values == _NO_OPTIONS:
        return NO_OPTIONS
    return Options(*_converted(list(values), _READ_OPTIONS))


def read_patch(body: schemas.TransferChange) -> SpecPatch:
    """What the body changes: a null takes a limit away."""
    values = {}
    for name, value in body.given().items():
        inner = _INNER[name]
        read = FORMS[inner].read
        values[inner] = read(value) if read is not None and value is not None else value
    if values.get("not_before_us", 0) is None:
        values["not_before_us"] = 0
    return SpecPatch(values)


def show_spec(spec: TransferSpec) -> dict[str, object]:
    """The fields of an answer."""
    values = [*_values(spec), *_options(spec.options)]
    return dict(zip(_NAMES, _converted(values, _SHOW), strict=True))


def _converted(values: list[Any], conversions: list[tuple[int, Callable[[Any], object]]]) -> list[Any]:
    for index, convert in conversions:
        if values[index] is not None:
            values[index] = convert(values[index])
    return values
