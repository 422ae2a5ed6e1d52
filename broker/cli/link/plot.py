# SPDX-License-Identifier: Apache-2.0
"""gamma(t) as text: the booked rate, and above it the free rate, over time."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from rich.text import Text

from broker.cli.quantities import show_rate, show_time
from broker.client.documents import Calendar
from broker.core.units import parse_time

_HEIGHT = 8
_MIN_WIDTH, _MAX_WIDTH = 20, 100
_BOOKED, _FREE = "█", "░"


def calendar(found: Calendar, width: int) -> Text:
    """A plot with columns of equal time. Each shows its mean, so short peaks appear too low (--steps prints the figures)."""
    begin, end = parse_time(found["begin"]), parse_time(found["end"])
    edges = [parse_time(step["begin"]) for step in found["steps"]] + [end]
    highest = max((step["capacity_bps"] for step in found["steps"]), default=0)
    label_width = max(len(show_rate(highest)), 6)
    columns = max(_MIN_WIDTH, min(width - label_width - 2, _MAX_WIDTH))
    at = [begin + (end - begin) * column // columns for column in range(columns + 1)]
    capacity = _means(at, edges, [step["capacity_bps"] for step in found["steps"]])
    booked = _means(at, edges, [step["booked_bps"] for step in found["steps"]])

    text = Text(f"{found['link']}  ", style="bold")
    text.append(f"{_BOOKED} booked  ", style="not bold blue").append(f"{_FREE} free\n", style="not bold green")
    for row in range(_HEIGHT, 0, -1):
        # A cell is filled if the value reaches its middle; any value above 0 fills the lowest row.
        level = highest * (2 * row - 1) / (2 * _HEIGHT) if row > 1 else 0.0
        label = show_rate(round(highest * row / _HEIGHT)) if row % 4 == 0 else ""
        text.append(f"{label:>{label_width}} ┤", style="dim")
        for column in range(columns):
            if booked[column] > level:
                text.append(_BOOKED, style="blue")
            elif capacity[column] > level:
                text.append(_FREE, style="green")
            else:
                text.append(" ")
        text.append("\n")
    text.append(f"{'0':>{label_width}} └{'─' * columns}\n", style="dim")
    first, last = show_time(found["begin"]), show_time(found["end"], datetime.fromisoformat(found["begin"]))
    text.append(" " * (label_width + 2) + first + last.rjust(columns - len(first)), style="dim")
    return text


def _means(at: Sequence[int], edges: Sequence[int], values: Sequence[int]) -> list[float]:
    """The mean of a step function (values[i] on [edges[i], edges[i+1])) in each of the intervals between `at`."""
    means = []
    first = 0
    for left, right in pairwise(at):
        while first < len(values) and edges[first + 1] <= left:
            first += 1
        area, step = 0, first
        while step < len(values) and edges[step] < right:
            area += values[step] * (min(right, edges[step + 1]) - max(left, edges[step]))
            step += 1
        means.append(area / max(right - left, 1))
    return means
