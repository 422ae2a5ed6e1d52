# SPDX-License-Identifier: Apache-2.0
"""The figures that planners are compared by. Each is what its name says; which requests count is said beside it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from broker.core.network import Network
from broker.core.segments import coalesce
from broker.core.units import US_PER_S
from broker.simulate.distributions import Float64Array
from broker.simulate.outcome import Outcome
from broker.simulate.steps import Steps
from broker.simulate.workload import Arrival, Workload

_MAX_CLASSES = 32


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """Requests of one Rmax (None: whatever the path carries)."""

    rate_max_bps: int | None
    requests: int
    admitted: int
    normalized_delay_s: float | None


@dataclass(frozen=True, slots=True)
class DeadlineMeasures:
    """Of the requests with a deadline: met + missed = all. Missed are those that were refused, and those that are late."""

    requests: int
    met: int
    missed: int
    late: int


@dataclass(frozen=True, slots=True)
class LinkMeasures:
    """Shares of the link's whole capacity. `mean`: while requests arrive."""

    link: str
    mean: float
    peak: float


@dataclass(frozen=True, slots=True)
class PlanningMeasures:
    """Wall-clock time of the planner's calls: a call plans one request, one batch, or (baselines) everything. Not reproducible."""

    calls: int
    mean_us_per_request: float
    mean_us_per_call: float
    p99_us_per_call: float


@dataclass(frozen=True, slots=True)
class Measures:
    """One planner on one workload.

    `normalized_delay_s`: sum(F d) / sum(F) over admitted requests, d from not_before to the finish (Veeraraghavan et al. 2004, section 3.3).
    `utilisation`: bits over all links that any planner uses, as a share of what they could have carried while requests arrive.
    `utilisation_over_time`: the same in equal stretches from the beginning to the end of the longest schedule.
    `congestion_factor`: the largest share of a link's capacity booked at any instant. `makespan_s`: from the beginning to the last finish.
    `mean_rows`: segments of a plan; rows that touch at one rate are one (None: there are no plans).
    """

    planner: str
    kind: str
    requests: int
    admitted: int
    acceptance_ratio: float
    asked_bytes: int
    admitted_bytes: int
    normalized_delay_s: float | None
    classes: tuple[ClassMeasures, ...]
    deadlines: DeadlineMeasures
    congestion_factor: float
    utilisation: float
    utilisation_over_time: tuple[float, ...]
    links: tuple[LinkMeasures, ...]
    makespan_s: float
    mean_rows: float | None
    most_rows: int | None
    refusals: Mapping[str, int]
    planning: PlanningMeasures


@dataclass(frozen=True, slots=True)
class Frame:
    """What all planners of a simulation are measured against."""

    begin_us: int
    window_us: int  # while requests arrive; to the last finish if all arrive at once
    horizon_us: int  # the end of the longest schedule
    points: int
    capacity_bps: Mapping[str, int]  # of every link that any planner uses


def frame(workload: Workload, outcomes: Iterable[Outcome], network: Network, begin_us: int, points: int) -> Frame:
    """What all outcomes are measured against: the time from `begin_us` to the last arrival, and the links that any of them uses."""
    used, last = set[str](), begin_us + 1
    for outcome in outcomes:
        used.update(outcome.carried)
        last = max(last, *(finish for finish in outcome.finishes_us if finish is not None), last)
    arrivals_end = workload.arrivals[-1].arrival_us
    capacity = {name: network.links[name].payload_bps(network.links[name].capacity_bps) for name in sorted(used)}
    return Frame(begin_us, arrivals_end if arrivals_end > begin_us else last, last, points, capacity)


def measure(outcome: Outcome, workload: Workload, against: Frame) -> Measures:
    """What one outcome is worth on this workload: delays, shares of links, refusals."""
    fates = list(zip(workload.arrivals, outcome.finishes_us, strict=True))
    admitted = [(arrival, finish) for arrival, finish in fates if finish is not None]
    rows = [len(coalesce(plan.segments)) for plan in outcome.plans]
    window = np.array([against.begin_us, against.window_us], np.float64)
    edges = np.linspace(against.begin_us, against.horizon_us, against.points + 1)
    return Measures(
        planner=outcome.planner,
        kind=outcome.kind,
        requests=len(fates),
        admitted=len(admitted),
        acceptance_ratio=len(admitted) / len(fates),
        asked_bytes=sum(_bytes(arrival) for arrival, _ in fates),
        admitted_bytes=sum(_bytes(arrival) for arrival, _ in admitted),
        normalized_delay_s=normalized_delay_s(admitted),
        classes=_classes(fates),
        deadlines=_deadlines(fates),
        congestion_factor=max(
            (steps.peak_bps / against.capacity_bps[name] for name, steps in outcome.carried.items()), default=0.0
        ),
        utilisation=_shares(outcome.carried, window, against)[0],
        utilisation_over_time=_shares(outcome.carried, edges, against),
        links=tuple([_link(name, outcome.carried[name], window, against) for name in sorted(outcome.carried)]),
        makespan_s=(max((finish for _, finish in admitted), default=against.begin_us) - against.begin_us) / US_PER_S,
        mean_rows=sum(rows) / len(rows) if rows else None,
        most_rows=max(rows, default=None),
        refusals=dict(sorted(Counter(outcome.refusals).items())),
        planning=_planning(outcome.seconds, len(fates)),
    )


def normalized_delay_s(finished: Sequence[tuple[Arrival, int]]) -> float | None:
    """sum(F d) / sum(F) over the finished files, in seconds (Veeraraghavan et al. 2004, section 3.3); None for none."""
    if not finished:
        return None
    weighted = sum(_bytes(arrival) * (finish - arrival.request.not_before_us) for arrival, finish in finished)
    return weighted / sum(_bytes(arrival) for arrival, _ in finished) / US_PER_S


def _bytes(arrival: Arrival) -> int:
    assert arrival.request.volume_bytes is not None
    return arrival.request.volume_bytes


_Fates = Sequence[tuple[Arrival, int | None]]


def _classes(fates: _Fates) -> tuple[ClassMeasures, ...]:
    """By Rmax, the smallest first. A trace with ever other rates has no classes."""
    by_rate: dict[int | None, list[tuple[Arrival, int | None]]] = {}
    for arrival, finish in fates:
        by_rate.setdefault(arrival.request.rate_max_bps, []).append((arrival, finish))
    if len(by_rate) > _MAX_CLASSES:
        return ()
    found = []
    for rate in sorted(by_rate, key=lambda rate: (rate is None, rate or 0)):
        admitted = [(arrival, finish) for arrival, finish in by_rate[rate] if finish is not None]
        found.append(ClassMeasures(rate, len(by_rate[rate]), len(admitted), normalized_delay_s(admitted)))
    return tuple(found)


def _deadlines(fates: _Fates) -> DeadlineMeasures:
    asked = [(arrival.request.deadline_us, finish) for arrival, finish in fates if arrival.request.deadline_us is not None]
    met = sum(finish is not None and finish <= deadline for deadline, finish in asked)
    late = sum(finish is not None and finish > deadline for deadline, finish in asked)
    return DeadlineMeasures(len(asked), met, len(asked) - met, late)


def _shares(carried: Mapping[str, Steps], edges: Float64Array, against: Frame) -> tuple[float, ...]:
    could = sum(against.capacity_bps.values()) * np.diff(edges) / US_PER_S
    bits = sum((steps.bits(edges) for steps in carried.values()), start=np.zeros(len(edges) - 1))
    return tuple(np.divide(bits, could, out=np.zeros_like(bits), where=could > 0).tolist())


def _link(name: str, steps: Steps, window: Float64Array, against: Frame) -> LinkMeasures:
    capacity = against.capacity_bps[name]
    mean = float(steps.bits(window)[0]) / (capacity * (window[1] - window[0]) / US_PER_S)
    return LinkMeasures(name, float(mean), steps.peak_bps / capacity)


def _planning(seconds: Sequence[float], requests: int) -> PlanningMeasures:
    total, calls = sum(seconds), len(seconds)
    if not calls:
        return PlanningMeasures(0, 0.0, 0.0, 0.0)
    p99 = sorted(seconds)[ceil(0.99 * calls) - 1]
    return PlanningMeasures(calls, total / requests * US_PER_S, total / calls * US_PER_S, p99 * US_PER_S)
