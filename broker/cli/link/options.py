# SPDX-License-Identifier: Apache-2.0
"""Options that several `bwb link` commands share."""

from typing import Annotated, Any

import typer

from broker.cli.quantities import DURATION, RATE, STEP

Replan = Annotated[
    bool,
    typer.Option("--replan", help="Go on although promises break: transfers in the way are planned anew. Default: refuse."),
]
Preview = Annotated[
    bool, typer.Option("--preview", help="Change nothing; show what would become of the transfers that lose their place.")
]
Capacity = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="10G, 800M (bit/s).")]
Mtu = Annotated[int | None, typer.Option(help="Given: the capacity is the line rate, and the payload share of it is booked.")]
Channel = Annotated[int | None, typer.Option(parser=RATE, metavar="RATE", help="Rates are whole multiples of it.")]
Slot = Annotated[
    int | None, typer.Option(parser=DURATION, metavar="TIME", help="Booked times are whole multiples of it: 1s, 100ms.")
]
Metric = Annotated[int | None, typer.Option(help="Of several paths the one with the least sum is taken.")]
Available = Annotated[
    list[Any] | None,
    typer.Option(parser=STEP, metavar="TIME=RATE", help="From TIME on, RATE may be used: +10min=200M. Repeat, in order of time."),
]


def pick_given(
    capacity: int | None, mtu: int | None, channel: int | None, slot: int | None, metric: int | None, available: list[Any] | None
) -> dict[str, Any]:
    """The link fields that were given as options."""
    fields = {"capacity_bps": capacity, "mtu_bytes": mtu, "channel_bps": channel, "slot_us": slot, "metric": metric}
    return {name: value for name, value in (fields | {"available": available or None}).items() if value is not None}
