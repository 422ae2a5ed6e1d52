# SPDX-License-Identifier: Apache-2.0
"""Results as pictures (PNG). Matplotlib is imported here alone, and draws without a display; import this late, it takes a while."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from broker.simulate.paper import CLASSES, Result

_SCHEMES = {"fbls": ("FBLS", "#c44e52", "s", "--"), "ps": ("PS", "#55a868", "o", ":"), "vbls": ("VBLS", "#4c72b0", "x", "-")}
_DPI = 130


def draw_paper(results: Sequence[Result], seeds: int, requests: int) -> bytes:
    """D against load, one panel for each Rmax, as figure 3 of the paper has one curve for each."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = figure.subplots(1, len(CLASSES))
    for panel, channels in zip(np.atleast_1d(panels), CLASSES, strict=True):
        _paper_panel(panel, [result for result in results if result.rmax_channels == channels])
        panel.set_title(f"Rmax = {channels} channel{'s' if channels > 1 else ''}")
        panel.set_xlabel("system load")
    np.atleast_1d(panels)[0].set_ylabel("normalized delay in s")
    np.atleast_1d(panels)[0].legend(loc="lower left")
    interval = f"mean and 95 % interval of {seeds} seeds" if seeds > 1 else "one seed"
    figure.suptitle(f"One link of 100 channels of 10 Gb/s, {requests} files a run, {interval}", fontsize=10)
    return _png(figure)


def _paper_panel(panel: Axes, results: Sequence[Result]) -> None:
    for scheme, (label, colour, marker, style) in _SCHEMES.items():
        mine = sorted((r for r in results if r.scheme == scheme and r.normalized_delay_s is not None), key=lambda r: r.load)
        loads, delays = [r.load for r in mine], np.array([r.normalized_delay_s for r in mine], np.float64)
        panel.plot(loads, delays, style, color=colour, marker=marker, markersize=5, fillstyle="none", label=label)
        if mine and all(r.ci95_s is not None for r in mine):
            half = np.array([r.ci95_s for r in mine], np.float64)
            panel.fill_between(loads, delays - half, delays + half, color=colour, alpha=0.12, linewidth=0)
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)


def draw_run(result: Mapping[str, Any]) -> bytes:
    """Four panels: delay by Rmax, acceptance, utilisation over time, change points."""
    planners = result["planners"]
    colours = mpl.colormaps["tab10" if len(planners) <= 10 else "tab20"]
    figure = Figure(figsize=(12, 8), layout="constrained")
    (delay, accepted), (used, rows) = figure.subplots(2, 2)
    _delays(delay, planners, colours)
    names = [each["planner"] for each in planners]
    at = np.arange(len(names))
    accepted.bar(at - 0.2, [each["acceptance_ratio"] for each in planners], 0.4, label="of the requests")
    accepted.bar(at + 0.2, [each["admitted_bytes"] / each["asked_bytes"] for each in planners], 0.4, label="of the bytes")
    accepted.set(title="admitted", ylim=(0, 1.2))
    accepted.legend(loc="upper right", ncols=2, fontsize=8)
    for i, each in enumerate(planners):
        shares = each["utilisation_over_time"]
        edges = np.linspace(0, result["workload"]["horizon_s"], len(shares) + 1)
        used.stairs(shares, edges, color=colours(i), label=each["planner"])
    used.set(title="utilisation of the links that are used", xlabel="s", ylim=(0, None))
    used.legend(fontsize=8)
    rows.bar(at, [each["mean_rows"] or 0 for each in planners], color=[colours(i) for i in at])
    rows.set(title="segments of a plan, mean")
    for panel in (accepted, rows):
        panel.set_xticks(at, names, rotation=30 if len(names) > 5 else 0)
    for panel in (delay, accepted, used, rows):
        panel.grid(alpha=0.3, axis="y")
    return _png(figure)


def _delays(panel: Axes, planners: Sequence[Mapping[str, Any]], colours: Any) -> None:
    classes = planners[0]["classes"]
    if classes:
        labels = ["no Rmax" if one["rate_max_bps"] is None else f"{one['rate_max_bps'] / 1e9:g} Gb/s" for one in classes]
        delays = [[one["normalized_delay_s"] for one in each["classes"]] for each in planners]
    else:
        labels, delays = ["all"], [[each["normalized_delay_s"]] for each in planners]
    width = 0.8 / len(planners)
    for i, (each, heights) in enumerate(zip(planners, delays, strict=True)):
        places = np.arange(len(labels)) + (i - (len(planners) - 1) / 2) * width
        panel.bar(places, [height or 0 for height in heights], width, color=colours(i), label=each["planner"])
    panel.set_xticks(np.arange(len(labels)), labels)
    panel.set(title="normalized delay by Rmax", ylabel="s")
    panel.legend(fontsize=8)


def _png(figure: Figure) -> bytes:
    out = BytesIO()
    # Without a date and a version inside, the same figures give the same file.
    FigureCanvasAgg(figure).print_figure(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()
