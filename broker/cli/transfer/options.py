# SPDX-License-Identifier: Apache-2.0
"""Options that several `bwb transfer` commands share, and the request built from them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from broker.cli import context
from broker.cli.quantities import DURATION, RATE, SIZE, WHEN
from broker.core.units import US_PER_S


class Mode(StrEnum):
    """Modes that the command line offers."""

    reserve = "reserve"
    managed = "managed"


class Limit(StrEnum):
    """Limits of a transfer that can be removed."""

    deadline = "deadline"
    not_before = "not-before"
    rate_max = "rate-max"
    rate_min = "rate-min"
    via = "via"
    most_segments = "most-segments"
    shortest_segment = "shortest-segment"


LIMITS = {
    Limit.deadline: "deadline",
    Limit.not_before: "not_before",
    Limit.rate_max: "rate_max_bps",
    Limit.rate_min: "rate_min_bps",
    Limit.via: "path",
    Limit.most_segments: "most_segments",
    Limit.shortest_segment: "shortest_segment_s",
}


class State(StrEnum):
    """States to filter by, as in the contract."""

    HELD = "HELD"
    RESERVED = "RESERVED"
    ACTIVE = "ACTIVE"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"


From = Annotated[str | None, typer.Argument(help="Node or enrolled host that has the data.")]
To = Annotated[str | None, typer.Argument(help="Node or enrolled host that shall get it.")]
Size = Annotated[int | None, typer.Option(parser=SIZE, metavar="SIZE", help="In bytes: 500M, 10G, 1.5TB, 64GiB.")]
SizeOf = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Take the size of this local file instead.")]
HoldFor = Annotated[
    int | None,
    typer.Option(
        "--duration", parser=DURATION, metavar="TIME", help="Instead of a size: hold capacity so long, without a gap: 90s, 1h30m."
    ),
]
Deadline = Annotated[
    str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Done by then: RFC 3339, or from now: +2h, +1h30m.")
]
NotBefore = Annotated[str | None, typer.Option(parser=WHEN, metavar="WHEN", help="Not earlier than that. Default: now.")]
HostsUpFrom = Annotated[
    str | None,
    typer.Option(
        parser=WHEN, metavar="WHEN", help="An agent that it needs is down, and will be back then: plan it from that time on."
    ),
]
RateMax = Annotated[
    int | None, typer.Option(parser=RATE, metavar="RATE", help="Never faster: 800M, 1.5G (bit/s), 100MB/s (bytes per second).")
]
RateMin = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="Never slower while it moves.")]
Priority = Annotated[int, typer.Option(help="Higher is more important, when capacity is lost.")]
Paths = Annotated[int | None, typer.Option(min=1, max=16, help="Choose from so many of the shortest paths. Default: 4.")]
Via = Annotated[str | None, typer.Option(metavar="LINK,...", help="Over these links and no others, from the first to the last.")]
Split = Annotated[bool | None, typer.Option("--split/--no-split", help="Several paths may carry it at once.")]
MostSegments = Annotated[int | None, typer.Option(min=1, help="The rate changes no more often.")]
ShortestSegment = Annotated[
    int | None, typer.Option(parser=DURATION, metavar="TIME", help="No segment but the last is shorter: 500ms, 10s.")
]
BestEffort = Annotated[
    bool | None, typer.Option("--best-effort/--guaranteed", help="It gives way to requests of higher priority that preempt.")
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...")]
Preview = Annotated[bool, typer.Option("--preview", help="Change nothing; show what would be.")]


class Signal(StrEnum):
    """The event on which a successor starts."""

    direct = "direct"
    broker = "broker"
    clock = "clock"


class Timeout(StrEnum):
    """What happens if the signal does not come."""

    start = "start"
    cancel = "cancel"


class Overrun(StrEnum):
    """What happens if the predecessor takes longer than booked."""

    delay = "delay"
    fallback = "fallback"


After = Annotated[str | None, typer.Option(metavar="ID", help="Begin when this transfer has ended.")]
SignalKind = Annotated[
    Signal | None,
    typer.Option(
        "--signal",
        help="How it learns of that. direct: from that one's sender. broker: from the broker. clock: it begins at its booked time. "
        "Default: direct.",
    ),
]
SignalTimeout = Annotated[
    int | None,
    typer.Option(
        parser=DURATION, metavar="TIME", help="So long without a word, the signal counts as lost. Default: 200ms, of the broker 5s."
    ),
]
OnTimeout = Annotated[Timeout | None, typer.Option(help="What it does then. Default: start.")]
OnOverrun = Annotated[
    Overrun | None,
    typer.Option(
        help="When that one needs longer. delay: this one begins later. fallback: that one goes on slowly. Default: delay."
    ),
]


def question(
    source: str | None,
    destination: str | None,
    size: int | None,
    size_of: Path | None,
    duration: int | None,
    fields: dict[str, Any],
) -> dict[str, Any]:
    """The request as the API takes it, without fields that were not given."""
    if source is None or destination is None:
        context.fail("give SOURCE DESTINATION, or --file", context.MISUSED)
    volume = size_of.stat().st_size if size_of is not None else size
    if [size, size_of, duration].count(None) != 2 or (duration is None and not volume):
        context.fail("give --size (more than 0), --size-of FILE or --duration TIME", context.MISUSED)
    fields = {"source": source, "destination": destination, "volume_bytes": volume, "duration_s": seconds(duration), **fields}
    return {name: value for name, value in fields.items() if value is not None}


def shape(
    paths: int | None,
    via: str | None,
    split: bool | None,
    most_segments: int | None,
    shortest_segment: int | None,
    best_effort: bool | None,
) -> dict[str, Any]:
    """The given fields that constrain a plan."""
    return {
        "paths": paths,
        "path": via.split(",") if via else None,
        "split": split,
        "most_segments": most_segments,
        "shortest_segment_s": seconds(shortest_segment),
        "best_effort": best_effort,
    }


def seconds(duration_us: int | None) -> float | None:
    """Microseconds as seconds."""
    return None if duration_us is None else duration_us / US_PER_S


def planners(given: str) -> list[str]:
    """Planners by name, separated by commas; `all` means every one."""
    return ["*"] if given in ("all", "*") else given.split(",")


def json_object(text: str | None) -> dict[str, Any] | None:
    """The object given by --metadata. Exits if it is not an object."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except ValueError as error:
        context.fail(f"--metadata is not JSON: {error}", context.MISUSED)
    if not isinstance(value, dict):
        context.fail('--metadata must be an object, such as {"run": 7}', context.MISUSED)
    return value


def start_signal(
    kind: Signal | None, timeout_us: int | None, on_timeout: Timeout | None, on_overrun: Overrun | None
) -> dict[str, Any] | None:
    """The start signal, or None if no option for it was given."""
    fields = {"kind": kind, "timeout_s": seconds(timeout_us), "on_timeout": on_timeout, "on_overrun": on_overrun}
    given = {name: str(value) if isinstance(value, StrEnum) else value for name, value in fields.items() if value is not None}
    return given or None
