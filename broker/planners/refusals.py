# SPDX-License-Identifier: Apache-2.0
"""The refusals of planners. Each names a field and, where possible, how to change the request."""

from broker.core.plan import Refusal
from broker.core.request import Request
from broker.core.units import US_PER_S, format_time


def too_late(request: Request) -> Refusal:
    """The refusal of a volume that does not fit."""
    if request.deadline_us is None:
        return Refusal("infeasible", "free capacity never suffices, however long one waits", "volume_bytes")
    return Refusal(
        "infeasible",
        f"{request.volume_bytes} bytes do not fit between {format_time(request.not_before_us)} "
        f"and the deadline {format_time(request.deadline_us)}",
        "deadline",
    )


def nowhere_held(request: Request) -> Refusal:
    """The refusal of a holding time during which the minimum rate is never free without a break."""
    assert request.duration_us is not None
    detail = f"at least {request.rate_min_bps or 1} bit/s is nowhere free for {request.duration_us / US_PER_S:.6f} s on end"
    if request.deadline_us is None:
        return Refusal("infeasible", detail, "rate_min_bps" if request.rate_min_bps else "duration_s")
    return Refusal("infeasible", f"{detail} by the deadline {format_time(request.deadline_us)}", "deadline")


def without_deadline(planner: str, why: str) -> Refusal:
    """The refusal of a planner that needs a deadline."""
    return Refusal("unsupported", f"{planner} {why}; give a deadline, or use vbls", "deadline")


def without_volume(planner: str, why: str) -> Refusal:
    """The refusal of a planner that needs a volume."""
    return Refusal(
        "unsupported", f"{planner} {why}; give volume_bytes, or use vbls for a holding time (duration_s)", "volume_bytes"
    )
