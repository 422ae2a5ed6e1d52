# SPDX-License-Identifier: Apache-2.0
"""Bodies of links as the desk takes them, and what changes of the network answer."""

from collections.abc import Iterator, Sequence

from broker.api.render import Json, reason, time_or_none
from broker.api.schemas import LinkBody, Step
from broker.core.network import Link
from broker.core.request import FieldProblem
from broker.desk.ground.problems import Problem
from broker.desk.network.displacement import Outcome

_MAX_OUTCOMES = 1000
_MAX_ERRORS = 20


def link_of(body: LinkBody) -> Link:
    """`mistakes` names its errors."""
    return Link(
        id=body.id,
        source=body.source,
        target=body.target,
        capacity_bps=body.capacity_bps,
        mtu_bytes=body.mtu_bytes,
        channel_bps=body.channel_bps,
        slot_us=body.slot_us,
        metric=body.metric,
        available=steps_of(body.available),
    )


def steps_of(steps: Sequence[Step]) -> tuple[tuple[int, int], ...]:
    """Steps of capacity as (from us, bit/s)."""
    return tuple([(step.from_, step.bps) for step in steps])


def mistakes(link: Link, at: str = "") -> Iterator[FieldProblem]:
    """What the fields of a link, each right on its own, do wrong together. `at` leads to the link in the body."""
    if link.source == link.target:
        yield FieldProblem(f"{at}target", f"source and target are both {link.source!r}")
    for index, (begin, bps) in enumerate(link.available):
        if bps > link.capacity_bps:
            yield FieldProblem(f"{at}available.{index}.bps", f"{bps} is more than capacity_bps, {link.capacity_bps}")
        if index and begin <= link.available[index - 1][0]:
            yield FieldProblem(f"{at}available.{index}.from", "steps must be in order of time, each at another instant")


def refuse(found: Sequence[FieldProblem]) -> None:
    """Raises Problem with every mistake, where there are any."""
    if found:
        errors = [{"field": field, "detail": detail} for field, detail in found[:_MAX_ERRORS]]
        raise Problem("invalid", "; ".join(f"{field}: {detail}" for field, detail in found[:3]), {"errors": errors})


def describe_outcomes(outcomes: Sequence[Outcome], preview: bool) -> Json:
    """What became, or would become, of the transfers that lose their place."""
    return {
        "replanned": [outcome.id for outcome in outcomes],
        "broken": [outcome.id for outcome in outcomes if outcome.broken],
        "outcomes": [_outcome(outcome) for outcome in outcomes[:_MAX_OUTCOMES]],
        "preview": preview,
    }


def _outcome(outcome: Outcome) -> Json:
    return {
        "id": outcome.id,
        "label": outcome.label,
        "source": outcome.source,
        "destination": outcome.destination,
        "priority": outcome.priority,
        "state": outcome.state,
        "limited_by": outcome.link_id,
        "promised_finish": time_or_none(outcome.promised_us),
        "finish_before": time_or_none(outcome.finish_before_us),
        "finish": time_or_none(outcome.finish_us),
        "broken": outcome.broken,
        "reason": None if outcome.reason is None else reason(outcome.reason),
    }
