# SPDX-License-Identifier: Apache-2.0
"""IFS, instantaneous fair sharing: the rates of transfers without any planning. For prediction and comparison only; books nothing.

Soudan, Guillier, Primet 2007 (RR-6205), section 3.1: every transfer starts at its `not_before` and shares all links fairly with the
active transfers (max-min, `rate_max_bps` as its cap). Each takes a single path, the best one that carries anything, as with IP
routing; this includes requests that may be split.
"""

from collections.abc import Sequence
from dataclasses import replace

from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Options, Request
from broker.core.segments import Segment
from broker.core.units import FOREVER_US, MAX_SLOT_US, US_PER_S, format_time
from broker.planners.fluid import Flow, Share, share_fairly
from broker.planners.signature import Calendars, Task, Traits, task
from broker.planners.vbls import Vbls


class Ifs:
    """Fair sharing has no admission: a request that misses its deadline or limits takes its share nevertheless."""

    name = "ifs"
    traits = Traits(books=False, joint=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:  # noqa: ARG002  it has no others
        """The plan of the request if it were alone."""
        return self.plan_together([request], network, calendars)[0]

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """The plan of each request while all of them share fairly."""
        fair = fair_plans(requests, network, calendars)
        return [as_asked(request, answer) for request, answer in zip(requests, fair, strict=True)]

    def largest_volume(self, request: Request, network: Network, calendars: Calendars) -> int:
        """Alone on its path, a flow under fair sharing takes all that is free, as VBLS does; so this is the volume of VBLS on that path."""
        wanted = best_path(request, network)
        if isinstance(wanted, Refusal):
            return 0
        alone = replace(request, options=Options(path=wanted.path))
        return Vbls().largest_volume(alone, network, calendars)


def fair_plans(requests: Sequence[Request], network: Network, calendars: Calendars) -> list[Plan | Refusal]:
    """The plan of each request under fair sharing among all of them, regardless of deadlines and limits on reprogramming.

    The plans fit side by side. A Refusal means that the request cannot take part, or would never finish.
    """
    wanted = [best_path(request, network) for request in requests]
    tasks = [(request, found) for request, found in zip(requests, wanted, strict=True) if isinstance(found, Task)]
    shares = iter(share_fairly([_flow(request, found) for request, found in tasks], calendars))
    return [found if isinstance(found, Refusal) else _profile(found.path, next(shares)) for found in wanted]


def best_path(request: Request, network: Network) -> Task | Refusal:
    """The request on its best path, or a refusal if it cannot take part in fair sharing."""
    if request.volume_bytes is None:
        return Refusal(
            "unsupported", "a holding time is never through, however much it gets of a link; give volume_bytes", "duration_s"
        )
    return task(request, network)


def _flow(request: Request, wanted: Task) -> Flow:
    return Flow(wanted.path, request.not_before_us, wanted.bits, wanted.rate_max, wanted.rate_min, wanted.channel, wanted.slot)


def _profile(path: tuple[str, ...], share: Share) -> Plan | Refusal:
    if share.finish_us is not None:
        return Plan(tuple([Segment(begin, end, rate, path) for begin, end, rate in share.rows.tolist()]))
    if share.grid_us > MAX_SLOT_US:
        return Refusal("infeasible", f"the slots of the links it would share coincide only every {share.grid_us / US_PER_S:.6f} s")
    return Refusal("infeasible", "under fair sharing it would never finish", "volume_bytes")


def as_asked(request: Request, answer: Plan | Refusal) -> Plan | Refusal:
    """`answer`, or a refusal if it ends after the deadline or breaks the limits on reprogramming."""
    if isinstance(answer, Refusal):
        return answer
    if request.deadline_us is not None and answer.finish_us > request.deadline_us:
        return Refusal(
            "infeasible",
            f"under fair sharing it would finish at {format_time(answer.finish_us)}, after the deadline {format_time(request.deadline_us)}",
            "deadline",
        )
    return _within_limits(request, answer)


def _within_limits(request: Request, plan: Plan) -> Plan | Refusal:
    """`plan`, or a refusal: fair sharing decides when a rate changes, so limits on reprogramming are kept only by chance."""
    options, segments = request.options, plan.segments
    if options.most_segments is not None and len(segments) > options.most_segments:
        detail = f"under fair sharing its rate takes {len(segments)} segments, at most {options.most_segments} are asked"
        return Refusal("unsupported", detail, "most_segments")
    shortest = min((segment.end_us - segment.begin_us for segment in segments[:-1]), default=FOREVER_US)
    if options.shortest_segment_us is not None and shortest < options.shortest_segment_us:
        least = options.shortest_segment_us / US_PER_S
        detail = f"under fair sharing it has a segment of {shortest / US_PER_S:.6f} s, at least {least:.6f} s are asked"
        return Refusal("unsupported", detail, "shortest_segment_s")
    return plan
