# SPDX-License-Identifier: Apache-2.0
"""The results as Markdown, beside the tables of the paper. Pure."""

from collections.abc import Iterable, Sequence

from tests.experiments.endhost.analysis import Summary, percentile, summaries
from tests.experiments.endhost.required import Verdict
from tests.experiments.endhost.run import Control, Echo, Record, Run, Signalling, Steps
from tests.experiments.endhost.setting import RTTS_US, STRATEGIES, rtt_label

_PAPER = {"ifs": "IFS", **dict.fromkeys(("vifi-clock", "vifi-direct", "vifi-broker"), "ViFi")}
_PAPER |= {"spaghetti-pacing": "SS (PSP)", "spaghetti-htb": "SS (HTB)"}
# RR-6205, tables 2 and 3, in percent at 0.1, 10 and 100 ms.
PAPER_MEAN = {"IFS": (3.4, 16.4, 64.3), "ViFi": (3.7, 9.2, 9.7), "SS (PSP)": (4.0, 4.0, 4.7), "SS (HTB)": (5.3, 17.7, 59.6)}
PAPER_P99 = {"IFS": (3.6, 17.5, 78.5), "ViFi": (3.8, 9.4, 11.4), "SS (PSP)": (4.0, 4.0, 4.7), "SS (HTB)": (5.6, 19.6, 67.6)}


def report(records: Sequence[Record], judged: Iterable[Verdict]) -> str:
    runs = [record for record in records if isinstance(record, Run) and record.discarded is None]
    made = summaries(runs)
    parts = [
        "### Mean completion time above the ideal (the paper's table 2)\n",
        _beside(made, "mean", PAPER_MEAN),
        "\n### 99th percentile of the completion time above the ideal (table 3)\n",
        _beside(made, "p99", PAPER_P99),
        "\n### All of it (figures 9 to 12)\n",
        _detail(made),
        "\n### ViFi: how long the link stood idle between the two\n",
        _gaps(runs),
        "\n### A booking whose rate changes\n",
        _steps([record for record in records if isinstance(record, Steps) and record.discarded is None]),
        "\n### What a start signal costs (figures 4, 5)\n",
        _signals([record for record in records if isinstance(record, Signalling)]),
        "\n### Round trips of a small packet on the idle link\n",
        _echoes([record for record in records if isinstance(record, Echo)]),
        "\n### What control costs at a booked 1 Gb/s\n",
        _control([record for record in records if isinstance(record, Control)]),
        "\n### Required figures\n",
        _judged(judged),
        "\n### Discarded runs\n",
        _discarded(records),
    ]
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _beside(made: dict[tuple[str, int], Summary], field: str, paper: dict[str, tuple[float, float, float]]) -> str:
    head = ["", *(rtt_label(rtt) for rtt in RTTS_US), *(f"paper, {rtt_label(rtt)}" for rtt in RTTS_US)]
    rows = []
    for name, strategy in STRATEGIES.items():
        ours = [f"{getattr(made[name, rtt], field):.2%}" if (name, rtt) in made else "" for rtt in RTTS_US]
        theirs = [f"{share:.1f}%" for share in paper[_PAPER[name]]] if name in _PAPER else [""] * len(RTTS_US)
        rows.append([strategy.label, *ours, *theirs])
    return table(head, rows)


def _detail(made: dict[tuple[str, int], Summary]) -> str:
    head = ["RTT", "", "runs", "ideal", "mean", "99 % interval", "std. dev.", "75 %", "99 %", "retransmitted", "dropped"]
    rows = []
    for rtt in RTTS_US:
        for name, strategy in STRATEGIES.items():
            if (name, rtt) not in made:
                continue
            s = made[name, rtt]
            interval = "" if s.half_interval is None else f"+-{s.half_interval:.2%}"
            rows.append(
                [
                    *(rtt_label(rtt), strategy.label, str(s.repetitions), f"{s.ideal_s:.3f} s", f"{s.mean:.2%}", interval),
                    *(f"{s.deviation_s * 1000:.1f} ms", f"{s.p75:.2%}", f"{s.p99:.2%}"),
                    *(f"{s.mean_retransmitted_bytes / 1e6:.3f} MB", f"{s.mean_dropped:.0f}"),
                ]
            )
    return table(head, rows)


def _gaps(runs: Iterable[Run]) -> str:
    found: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        if run.gap_us is not None:
            found.setdefault((run.strategy, run.rtt_us), []).append(run.gap_us)
    rows = [
        [STRATEGIES[name].label, rtt_label(rtt), str(len(gaps)), *(f"{value / 1000:.2f} ms" for value in _three(gaps))]
        for (name, rtt), gaps in sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    return table(["", "RTT", "runs", "least", "mean", "most"], rows)


def _steps(steps: Iterable[Steps]) -> str:
    found: dict[tuple[str, int], list[Steps]] = {}
    for step in steps:
        found.setdefault((step.mechanism, step.rtt_us), []).append(step)
    rows = []
    for (mechanism, rtt), mine in sorted(found.items(), key=lambda item: (item[0][1], item[0][0])):
        delays = [delay for step in mine for delay in step.repacing_us]
        off = [s.measured_bps / s.booked_bps - 1 for step in mine for s in step.segments]
        least, _, most = _three(delays)
        rows.append(
            [
                *(mechanism, rtt_label(rtt), str(len(mine)), f"{least / 1000:+.1f} to {most / 1000:+.1f} ms"),
                f"{min(off):+.2%} to {max(off):+.2%}",
            ]
        )
    return table(["", "RTT", "runs", "rate changes after the boundary", "mean rate of a segment against the booking"], rows)


def _signals(records: Iterable[Signalling]) -> str:
    rows = []
    for record in sorted(records, key=lambda record: record.rtt_us):
        costs = record.cost_us
        spread = [sum(costs) / len(costs), percentile(costs, 50), percentile(costs, 99)]
        rows.append(
            [
                *(rtt_label(record.rtt_us), str(len(costs)), *(f"{cost / 1000:.3f} ms" for cost in spread)),
                *(f"{1.5 * record.rtt_us / 1000:g} ms", f"{spread[0] / record.rtt_us:.2f}"),
            ]
        )
    return table(["RTT", "signals", "mean", "median", "99 %", "1.5 RTT", "mean / RTT"], rows)


def _echoes(records: Iterable[Echo]) -> str:
    found = {record.rtt_us: record.measured_us for record in records}
    return table(["set", "measured"], [[rtt_label(rtt), f"{found[rtt] / 1000:.3f} ms"] for rtt in RTTS_US if rtt in found])


def _control(records: Iterable[Control]) -> str:
    rows = [[r.mechanism, f"{r.rate_bps / 1e6:.0f} Mb/s", f"{r.percent_of_a_core:.2f} %"] for r in records]
    return table(["", "reached", "of a core"], rows)


def _judged(judged: Iterable[Verdict]) -> str:
    word = {True: "yes", False: "**no**", None: "**not measured**"}
    return table(["figure", "required", "found", "reached"], [[v.what, v.wanted, v.found, word[v.reached]] for v in judged])


def _discarded(records: Iterable[Record]) -> str:
    reasons: dict[str, int] = {}
    total = 0
    for record in records:
        if isinstance(record, Run | Steps):
            total += 1
            if record.discarded:
                reasons[record.discarded] = reasons.get(record.discarded, 0) + 1
    if not reasons:
        return f"None of {total}."
    listed = "; ".join(f"{count} because {reason}" for reason, count in sorted(reasons.items()))
    return f"{sum(reasons.values())} of {total}, each repeated: {listed}."


def _three(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), sum(values) / len(values), max(values)
