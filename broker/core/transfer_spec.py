# SPDX-License-Identifier: Apache-2.0
"""The parameters that a caller gives for one transfer, defined once and used in admission, records, changes and replans.

A new field of a transfer is a field here, a column of the same name (store/tables.py), and its form in REST (api/schemas.py): "Add a
REST field" in CONTRIBUTING.md. tests/api/test_transfer_fields.py fails if one of them is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any

from broker.core.request import DEFAULT_PLANNER, NO_OPTIONS, Options
from broker.core.units import US_PER_S


@dataclass(frozen=True, slots=True)
class FlowMatch:
    """The packets of an observed transfer, as its source host sends them. Ports are "5001" or "5001-5010"; None means all.

    `address`: None means the address of the destination host's agent.
    """

    protocol: str = "tcp"
    address: str | None = None
    source_ports: str | None = None
    destination_ports: str | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """The file that a managed transfer moves (`path`), or the packets of an observed one (`match`)."""

    path: str | None = None
    destination_path: str | None = None
    overwrite: bool = False
    verify: bool = True
    match: FlowMatch | None = None

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "Payload":
        """Parse the JSON that the API takes and the database keeps."""
        match = document.get("match")
        return cls(**{**document, "match": None if match is None else FlowMatch(**match)})


class SignalKind(StrEnum):
    """The event on which a successor starts."""

    CLOCK = "clock"  # the booked time
    DIRECT = "direct"  # a handshake with the predecessor's sender
    BROKER = "broker"  # a message from the broker


class OnTimeout(StrEnum):
    """What a successor does if its start signal does not come."""

    START = "start"
    CANCEL = "cancel"


class OnOverrun(StrEnum):
    """What happens when a predecessor takes longer than booked."""

    DELAY = "delay"  # it delays its successor
    FALLBACK = "fallback"  # it continues at its fallback rate


@dataclass(frozen=True, slots=True)
class StartSignal:
    """The event on which a successor starts, and what happens if it does not come (RR-6205, section 2.2)."""

    kind: SignalKind = SignalKind.DIRECT
    timeout_us: int | None = None
    on_timeout: OnTimeout = OnTimeout.START
    on_overrun: OnOverrun = OnOverrun.DELAY

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "StartSignal":
        """Parse the JSON that the API takes and the database keeps."""
        timeout_s = document.get("timeout_s")
        return cls(
            SignalKind(document["kind"]),
            None if timeout_s is None else round(timeout_s * US_PER_S),
            OnTimeout(document["on_timeout"]),
            OnOverrun(document["on_overrun"]),
        )

    def document(self) -> dict[str, str | float | None]:
        """The JSON that `parse` takes."""
        return {
            "kind": self.kind,
            "timeout_s": None if self.timeout_us is None else self.timeout_us / US_PER_S,
            "on_timeout": self.on_timeout,
            "on_overrun": self.on_overrun,
        }


@dataclass(frozen=True, slots=True)
class TransferSpec:
    """Move `volume_bytes` from `source` to `destination`, or reserve capacity between them for `duration_us`.

    The database has a column of the same name for each field; REST flattens `options`, and shows times as RFC 3339 and durations in
    seconds (api/transfer_fields.py).
    """

    source: str
    destination: str
    volume_bytes: int | None = None
    duration_us: int | None = None
    rate_max_bps: int | None = None
    rate_min_bps: int | None = None
    not_before_us: int = 0  # 0: as early as possible; an admitted transfer has a time
    deadline_us: int | None = None
    priority: int = 0
    best_effort: bool = False
    planner: str = DEFAULT_PLANNER
    project: str | None = None
    label: str | None = None
    payload: Payload | None = None
    mechanism: str | None = None
    after: str | None = None
    signal: StartSignal | None = None
    metadata: Mapping[str, Any] | None = None  # the caller's own; the broker does not interpret it
    options: Options = NO_OPTIONS

    def begun_at(self, not_before_us: int, signal: StartSignal | None) -> "TransferSpec":
        """The spec as admitted: with its earliest begin and its signal. Every admission runs this, and `replace` takes twice as long."""
        values = list(_read_spec(self))
        values[_NOT_BEFORE], values[_SIGNAL] = not_before_us, signal
        return TransferSpec(*values)


_SPEC_NAMES = tuple(each.name for each in fields(TransferSpec))
_NOT_BEFORE, _SIGNAL = _SPEC_NAMES.index("not_before_us"), _SPEC_NAMES.index("signal")
_read_spec = attrgetter(*_SPEC_NAMES)
OPTION_FIELDS = frozenset(option.name for option in fields(Options))
SPEC_FIELDS = frozenset(said.name for said in fields(TransferSpec)) - {"options"} | OPTION_FIELDS
# Owner of the data and how hosts carry it out: these cannot be changed later.
FIXED_FIELDS = frozenset({"source", "destination", "payload", "mechanism", "after", "signal"})


@dataclass(frozen=True, slots=True)
class SpecPatch:
    """New values of some fields of a spec and of its options, by name. Fields not named stay unchanged."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def apply(self, spec: TransferSpec) -> TransferSpec:
        """`spec` with the new values."""
        of_options = {name: value for name, value in self.values.items() if name in OPTION_FIELDS}
        of_spec = {name: value for name, value in self.values.items() if name not in OPTION_FIELDS}
        return replace(spec, **of_spec, options=replace(spec.options, **of_options) if of_options else spec.options)
