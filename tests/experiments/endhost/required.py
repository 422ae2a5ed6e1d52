# SPDX-License-Identifier: Apache-2.0
"""The figures that must be reached, each with what was found. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tests.experiments.endhost.analysis import Summary, summaries
from tests.experiments.endhost.run import Control, Record, Run, Segment, Signalling, Steps
from tests.experiments.endhost.setting import IFS, PACED, RTTS_US, STRATEGIES, rtt_label

MAX_MEAN, MAX_P99 = 0.015, 0.02
MAX_OFF_BOOKING, SHORTEST_SEGMENT_S = 0.01, 2.0
MAX_REPACING_US = 20_000
MAX_CONTROL_PERCENT, CONTROL_BPS = 3.0, (0.9e9, 1.02e9)
GAP_RTTS, GAP_US = 1.5, 3_000


class Verdict(NamedTuple):
    """A figure, what it must be, what it is; `reached` is None where nothing was measured."""

    what: str
    wanted: str
    found: str
    reached: bool | None


def verdicts(records: Sequence[Record], repetitions: int, rtts_us: Sequence[int] = RTTS_US) -> list[Verdict]:
    runs = [record for record in records if isinstance(record, Run) and record.discarded is None]
    steps = [record for record in records if isinstance(record, Steps) and record.discarded is None]
    made = summaries(runs)
    return [
        *_complete(made, repetitions, rtts_us),
        *_paced(made, rtts_us),
        *(_gap([run for run in runs if run.rtt_us == rtt], rtt) for rtt in rtts_us),
        *_segments(runs, steps),
        *_repacing(steps),
        *(_signalling([r for r in records if isinstance(r, Signalling) and r.rtt_us == rtt], rtt) for rtt in rtts_us),
        _control([record for record in records if isinstance(record, Control)]),
    ]


def _complete(made: dict[tuple[str, int], Summary], repetitions: int, rtts_us: Sequence[int]) -> Iterator[Verdict]:
    counts = [made[case].repetitions if case in made else 0 for case in ((name, rtt) for name in STRATEGIES for rtt in rtts_us)]
    yield Verdict("repetitions of every strategy at every RTT", f">= {repetitions}", f"{min(counts)}", min(counts) >= repetitions)


def _paced(made: dict[tuple[str, int], Summary], rtts_us: Sequence[int]) -> Iterator[Verdict]:
    for rtt in rtts_us:
        found, plain = made.get((PACED, rtt)), made.get((IFS.name, rtt))
        name = f"spaghetti with pacing, {rtt_label(rtt)}"
        if found is None:
            yield Verdict(name, "", "not measured", None)
            continue
        yield Verdict(f"{name}: mean", f"<= {MAX_MEAN:.1%}", f"{found.mean:.2%}", found.mean <= MAX_MEAN)
        yield Verdict(f"{name}: 99th percentile", f"<= {MAX_P99:.1%}", f"{found.p99:.2%}", found.p99 <= MAX_P99)
        if rtt != min(RTTS_US) and plain is not None:
            yield Verdict(f"{name}: below IFS", f"< {plain.mean:.2%}", f"{found.mean:.2%}", found.mean < plain.mean)


def _gap(runs: Iterable[Run], rtt_us: int) -> Verdict:
    gaps = [run.gap_us for run in runs if run.strategy == "vifi-direct" and run.gap_us is not None]
    most = GAP_RTTS * rtt_us + GAP_US
    what = f"ViFi direct, {rtt_label(rtt_us)}: longest gap"
    if not gaps:
        return Verdict(what, f"<= {most / 1000:g} ms", "not measured", None)
    return Verdict(what, f"<= {most / 1000:g} ms", f"{max(gaps) / 1000:.2f} ms", max(gaps) <= most)


def _segments(runs: Iterable[Run], steps: Iterable[Steps]) -> Iterator[Verdict]:
    found: dict[str, list[Segment]] = {}
    for run in runs:
        if mechanism := STRATEGIES[run.strategy].mechanism:
            found.setdefault(mechanism, []).extend(run.segments)
    for step in steps:
        found.setdefault(step.mechanism, []).extend(step.segments)
    for mechanism, segments in sorted(found.items()):
        off = [s.measured_bps / s.booked_bps - 1 for s in segments if s.seconds >= SHORTEST_SEGMENT_S]
        if not off:
            continue
        what = f"{mechanism}: mean rate against the booking, {len(off)} segments of 2 s and more"
        worst = max(off, key=abs)
        if mechanism == "userland":
            yield Verdict(what, "(no limit)", f"{worst:+.2%} at worst", True)
        else:
            yield Verdict(what, f"within {MAX_OFF_BOOKING:.0%}", f"{worst:+.2%} at worst", abs(worst) <= MAX_OFF_BOOKING)


def _repacing(steps: Iterable[Steps]) -> Iterator[Verdict]:
    found: dict[str, list[float]] = {}
    for step in steps:
        found.setdefault(step.mechanism, []).extend(step.repacing_us)
    if not found:
        yield Verdict("re-pacing after a boundary", f"<= {MAX_REPACING_US // 1000} ms", "not measured", None)
    for mechanism, delays in sorted(found.items()):
        # A step down is early by the guard time; that is no delay.
        yield Verdict(
            f"{mechanism}: re-pacing after a boundary, {len(delays)} steps",
            f"<= {MAX_REPACING_US // 1000} ms",
            f"{min(delays) / 1000:+.1f} to {max(delays) / 1000:+.1f} ms",
            max(delays) <= MAX_REPACING_US,
        )


def _signalling(records: Sequence[Signalling], rtt_us: int) -> Verdict:
    costs = [cost for record in records for cost in record.cost_us]
    what, wanted = f"start signal, {rtt_label(rtt_us)}: mean", f"about 1.5 RTT = {1.5 * rtt_us / 1000:g} ms"
    if not costs:
        return Verdict(what, wanted, "not measured", None)
    return Verdict(what, wanted, f"{sum(costs) / len(costs) / 1000:.2f} ms", True)


def _control(records: Sequence[Control]) -> Verdict:
    what, wanted = "agent's CPU for control at 1 Gb/s", f"<= {MAX_CONTROL_PERCENT:g} % of a core"
    # Slower, and less than a gigabit was controlled; faster, and it was not controlled at all.
    counted = [record for record in records if CONTROL_BPS[0] <= record.rate_bps <= CONTROL_BPS[1]]
    if not counted:
        return Verdict(what, wanted, "not measured", None)
    worst = max(counted, key=lambda record: record.percent_of_a_core)
    return Verdict(what, wanted, f"{worst.percent_of_a_core:.2f} %", worst.percent_of_a_core <= MAX_CONTROL_PERCENT)
