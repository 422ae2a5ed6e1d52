# SPDX-License-Identifier: Apache-2.0
"""NET.json and REQ.json (design, section 4) -> Network and Requests, or every mistake in them by file and field.

The files are written by hand and by scripts, so types are strict: text is not a number, 1e9 is not an integer, and a time has a
zone. Unknown fields are ignored but reported, because a misspelt `deadline` would otherwise yield a plan without one.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from broker.core.network import Link, Network
from broker.core.request import DEFAULT_PATHS, FieldProblem, Options, Request
from broker.core.units import MAX_TIME_US, US_PER_S, parse_time

_MAX_MISTAKES = 20  # a generated file repeats its mistake in every entry; the first ones suffice


class BadFile(Exception):
    """The mistakes in a file, one line each."""

    def __init__(self, path: Path, mistakes: Sequence[str]) -> None:
        self.path, self.mistakes = path, tuple(mistakes)
        shown = list(self.mistakes[:_MAX_MISTAKES])
        if len(self.mistakes) > len(shown):
            shown.append(f"... and {len(self.mistakes) - len(shown)} more")
        super().__init__("\n".join(f"{path}: {line}" for line in shown))


class NetworkFile(NamedTuple):
    """The contents of NET.json."""

    network: Network
    nodes: tuple[dict[str, Any], ...]  # their names and places, if the file has them
    ignored: tuple[str, ...]  # names of unknown fields


class RequestsFile(NamedTuple):
    """The contents of REQ.json; `ignored`: names of unknown fields."""

    requests: tuple[Request, ...]
    ignored: tuple[str, ...]


def read_network(path: Path) -> NetworkFile:
    """Read and validate NET.json. Raises BadFile."""
    document = _read(path, _NetworkDocument)
    links = [entry.link() for entry in document.links]
    _check(path, "links", links)
    places = tuple(node.model_dump(exclude_none=True, exclude=set(node.model_extra or ())) for node in document.nodes or ())
    return NetworkFile(Network(links), places, _ignored(document, [*document.links, *(document.nodes or ())]))


def read_requests(path: Path, paths: int = DEFAULT_PATHS) -> RequestsFile:
    """Read and validate REQ.json. `paths`: the default number of paths that a planner may choose from. Raises BadFile."""
    document = _read(path, _RequestsDocument)
    requests = [entry.request(paths) for entry in document.requests]
    _check(path, "requests", requests)
    return RequestsFile(tuple(requests), _ignored(document, document.requests))


# --- the shapes -----------------------------------------------------------------------------------------------------------------


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has control characters")
    return text


def _instant(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError('must be an RFC 3339 time in quotes, such as "2026-01-01T00:00:00Z"')
    return parse_time(value)


def _seconds(value: Any) -> int:
    """Seconds, with or without a fraction -> microseconds."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number of seconds")
    if not (Decimal(value).is_finite() and 0 < value <= MAX_TIME_US // US_PER_S):
        raise ValueError("must be above 0 and end before the year 10000")
    micros = Decimal(value).scaleb(6)
    if micros != int(micros):
        raise ValueError("is finer than a microsecond")
    return int(micros)


def _degrees(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not -180 <= value <= 180:
        raise ValueError("must be a number of degrees")
    return float(value)


_Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
_Instant = Annotated[int, BeforeValidator(_instant)]
_Seconds = Annotated[int, BeforeValidator(_seconds)]
_Degrees = Annotated[float, BeforeValidator(_degrees)]


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Step(_Entry):
    from_: _Instant = Field(alias="from")
    bps: int


class _Link(_Entry):
    id: _Name
    source: _Name
    target: _Name
    capacity_bps: int
    mtu_bytes: int | None = None
    channel_bps: int | None = None
    slot_us: int | None = None
    metric: int | None = None
    available: list[_Step] | None = None

    def link(self) -> Link:
        return Link(
            id=self.id,
            source=self.source,
            target=self.target,
            capacity_bps=self.capacity_bps,
            mtu_bytes=self.mtu_bytes,
            channel_bps=self.channel_bps,
            slot_us=1 if self.slot_us is None else self.slot_us,
            metric=self.metric,
            available=tuple((step.from_, step.bps) for step in self.available or ()),
        )


class _Request(_Entry):
    id: _Name
    source: _Name
    destination: _Name
    volume_bytes: int | None = None
    rate_max_bps: int | None = None
    rate_min_bps: int | None = None
    not_before: _Instant
    deadline: _Instant | None = None
    duration_s: _Seconds | None = None
    priority: int | None = None
    paths: int | None = None
    path: list[_Name] | None = None
    split: bool | None = None
    shortest_segment_s: _Seconds | None = None
    most_segments: int | None = None

    def request(self, paths: int) -> Request:
        return Request(
            id=self.id,
            source=self.source,
            destination=self.destination,
            volume_bytes=self.volume_bytes,
            not_before_us=self.not_before,
            rate_max_bps=self.rate_max_bps,
            rate_min_bps=self.rate_min_bps,
            deadline_us=self.deadline,
            duration_us=self.duration_s,
            priority=self.priority or 0,
            options=Options(
                paths=paths if self.paths is None else self.paths,
                path=None if self.path is None else tuple(self.path),
                split=self.split or False,
                shortest_segment_us=self.shortest_segment_s,
                most_segments=self.most_segments,
            ),
        )


class _Node(_Entry):
    id: _Name
    name: _Name | None = None
    latitude: _Degrees | None = None
    longitude: _Degrees | None = None


class _NetworkDocument(_Entry):
    links: list[_Link]
    nodes: list[_Node] | None = None


class _RequestsDocument(_Entry):
    requests: list[_Request]


# --- reading and reporting mistakes ---------------------------------------------------------------------------------------------

_Document = TypeVar("_Document", bound=_Entry)

_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number, without a fraction or an exponent",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "model_type": "must be an object",
    "string_too_short": "must not be empty",
}
# A plan must not depend on the time of planning, so "now" is not a default here (unlike on the server, which has a clock).
_NOT_BEFORE = 'is missing: say when the transfer may begin, for example "2026-01-01T00:00:00Z"'


def _read(path: Path, shape: type[_Document]) -> _Document:
    try:
        # Decimals keep 1e9 and NaN unchanged until validation refuses them by name.
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        content = json.loads(raw, parse_float=Decimal, parse_constant=Decimal)
    except OSError as error:
        raise BadFile(path, [f"cannot be read: {error.strerror or error}"]) from None
    except RecursionError:
        raise BadFile(path, ["is not JSON that we can read: nested too deeply"]) from None
    except ValueError as error:
        raise BadFile(path, [f"is not JSON: {error}"]) from None
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        raise BadFile(path, [_mistake(details) for details in error.errors()]) from None


def _mistake(details: ErrorDetails) -> str:
    where = _where(details["loc"])
    if details["type"] == "missing" and details["loc"][-1] == "not_before":
        return f"{where}: {_NOT_BEFORE}"
    cause = details.get("ctx", {}).get("error")
    words = str(cause) if cause is not None else _WORDS.get(details["type"], details["msg"])
    value = details["input"]
    shown = "" if isinstance(value, Mapping | list) or details["type"] == "missing" else f" (it is {_short(value)})"
    return f"{where}: {words}{shown}"


def _where(location: tuple[int | str, ...]) -> str:
    """("links", 3, "capacity_bps") -> links[3].capacity_bps."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "the file"


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check(path: Path, name: str, items: Sequence[Link | Request]) -> None:
    """Checks beyond single fields: values out of range, fields that exclude each other, duplicate ids."""
    mistakes = []
    first: dict[str, int] = {}
    for i, item in enumerate(items):
        if (earlier := first.setdefault(item.id, i)) != i:
            mistakes.append(f"{name}[{i}].id: {_short(item.id)} is {name}[{earlier}] already")
        problems: Iterator[FieldProblem] = item.problems()
        mistakes.extend(f"{name}[{i}].{problem.field}: {problem.detail}" for problem in problems)
    if mistakes:
        raise BadFile(path, mistakes)


def _ignored(document: _Entry, entries: Sequence[_Entry]) -> tuple[str, ...]:
    names = {name for entry in (document, *entries) for name in entry.model_extra or ()}
    return tuple(sorted(names - {"comment"}))
