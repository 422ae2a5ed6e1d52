# SPDX-License-Identifier: Apache-2.0
"""The results as pictures (SVG), after figures 4, 5 and 9 to 12 of the paper. Matplotlib draws without a display; import this late."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from tests.experiments.endhost.analysis import Summary, by_case, deficiency, summaries
from tests.experiments.endhost.run import Record, Run, Signalling
from tests.experiments.endhost.setting import RTTS_US, STRATEGIES, rtt_label

_COLOURS = dict(zip(STRATEGIES, mpl.colormaps["tab10"].colors, strict=False))  # type: ignore[attr-defined]
_MARKERS = dict(zip(STRATEGIES, "os^vD*xP", strict=True))


def draw(records: Sequence[Record]) -> dict[str, bytes]:
    """File name -> picture."""
    runs = [record for record in records if isinstance(record, Run) and record.discarded is None]
    signals = [record for record in records if isinstance(record, Signalling)]
    made = {}
    if runs:
        made["endhost-completion.svg"] = _completion(runs)
        made["endhost-summary.svg"] = _summary(summaries(runs))
    if signals:
        made["endhost-signalling.svg"] = _signalling(signals)
    return made


def _completion(runs: Sequence[Run]) -> bytes:
    """A row for each RTT: box plots, and the distribution (figure 9)."""
    cases = by_case(runs)
    figure = Figure(figsize=(12, 11), layout="constrained")
    rows = figure.subplots(len(RTTS_US), 2, width_ratios=(3, 2))
    for (boxes, distribution), rtt in zip(rows, RTTS_US, strict=True):
        names = [name for name in STRATEGIES if (name, rtt) in cases]
        shares = [[100 * deficiency(run) for run in cases[name, rtt]] for name in names]
        _boxes(boxes, names, shares)
        for name, mine in zip(names, shares, strict=True):
            distribution.ecdf(mine, color=_COLOURS[name], label=STRATEGIES[name].label)
        for panel in (boxes, distribution):
            panel.set_title(f"RTT {rtt_label(rtt)}", fontsize=10)
            panel.grid(alpha=0.3)
        boxes.set_ylabel("above the ideal, %")
        distribution.set(xlabel="above the ideal, %", ylabel="share of the runs")
        if names:
            distribution.legend(fontsize=7, loc="lower right")
    return _svg(figure)


def _boxes(panel: Axes, names: Sequence[str], shares: Sequence[Sequence[float]]) -> None:
    if not names:
        return
    drawn = panel.boxplot(shares, whis=(0, 100), patch_artist=True, medianprops={"color": "black"})
    for box, name in zip(drawn["boxes"], names, strict=True):
        box.set_facecolor(_COLOURS[name])
    labels = [STRATEGIES[name].label.replace(", ", ",\n").replace(" (", "\n(") for name in names]
    panel.set_xticks(range(1, len(names) + 1), labels, fontsize=7)


def _summary(made: dict[tuple[str, int], Summary]) -> bytes:
    """Against the RTT: mean with its interval, standard deviation, percentiles, retransmissions (figures 10 to 12)."""
    figure = Figure(figsize=(12, 8), layout="constrained")
    (mean, deviation), (percentiles, retransmitted) = figure.subplots(2, 2)
    for name, strategy in STRATEGIES.items():
        rtts = [rtt for rtt in RTTS_US if (name, rtt) in made]
        if not rtts:
            continue
        mine = [made[name, rtt] for rtt in rtts]
        at = [rtt / 1000 for rtt in rtts]
        style = {"color": _COLOURS[name], "marker": _MARKERS[name], "label": strategy.label, "linewidth": 1, "markersize": 5}
        half = [100 * (s.half_interval or 0) for s in mine]
        mean.errorbar(at, [100 * s.mean for s in mine], half, capsize=3, **style)
        deviation.plot(at, [s.deviation_s * 1000 for s in mine], **style)
        percentiles.plot(at, [100 * s.p99 for s in mine], **style)
        percentiles.plot(at, [100 * s.p75 for s in mine], ":", color=_COLOURS[name], linewidth=1)
        retransmitted.plot(at, [s.mean_retransmitted_bytes / 1e6 for s in mine], **style)
    mean.set(title="mean and its 99 % confidence interval", ylabel="above the ideal, %")
    deviation.set(title="standard deviation of the completion time", ylabel="ms", yscale="symlog")
    percentiles.set(title="99th percentile (dotted: 75th)", ylabel="above the ideal, %")
    retransmitted.set(title="retransmitted, mean of a run", ylabel="MB")
    for panel in (mean, deviation, percentiles, retransmitted):
        panel.set(xscale="log", xlabel="RTT, ms")
        panel.set_xticks([rtt / 1000 for rtt in RTTS_US], [rtt_label(rtt) for rtt in RTTS_US])
        panel.grid(alpha=0.3)
    mean.legend(fontsize=7)
    return _svg(figure)


def _signalling(records: Sequence[Signalling]) -> bytes:
    """The distribution at each RTT (figure 4), and the mean against 1.5 RTT (figure 5)."""
    found = {record.rtt_us: np.array(record.cost_us) / 1000 for record in records}
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    *panels, means = figure.subplots(1, len(RTTS_US) + 1)
    for panel, rtt in zip(panels, RTTS_US, strict=True):
        panel.set(title=f"RTT {rtt_label(rtt)}", xlabel="cost of a signal, ms")
        if rtt in found:
            panel.hist(found[rtt], bins=30, color="#4c72b0")
            panel.axvline(1.5 * rtt / 1000, color="#c44e52", linestyle="--", label="1.5 RTT")
            panel.legend(fontsize=7)
    rtts = [rtt for rtt in RTTS_US if rtt in found]
    means.plot([rtt / 1000 for rtt in rtts], [found[rtt].mean() for rtt in rtts], "x-", label="mean")
    means.plot([rtt / 1000 for rtt in RTTS_US], [1.5 * rtt / 1000 for rtt in RTTS_US], "--", color="#c44e52", label="1.5 RTT")
    means.set(xscale="log", yscale="log", xlabel="RTT, ms", ylabel="ms", title="mean")
    means.legend(fontsize=7)
    return _svg(figure)


def _svg(figure: Figure) -> bytes:
    out = BytesIO()
    # Without a date, and with fixed names inside, the same figures give the same file.
    with mpl.rc_context({"svg.hashsalt": "endhost", "svg.fonttype": "none"}):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return out.getvalue()
