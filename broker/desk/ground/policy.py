# SPDX-License-Identifier: Apache-2.0
"""The operator's policy for all requests: leads, margins, and the length of a hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.core.network import Route
from broker.core.units import MAX_VOLUME_BYTES, US_PER_S, volume_of

if TYPE_CHECKING:  # the desk itself reads no environment
    from broker.settings import Settings


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator has settled for all requests. Durations in microseconds."""

    hold_us: int = 300 * US_PER_S
    managed_lead_us: int = 1_500_000
    replan_lead_us: int = 500_000
    managed_margin_ppm: int = 10_000
    managed_margin_us: int = 50_000
    # A push, a question and an answer.
    hearing_us: int = 100_000
    # Everybody waits while requests are planned together: more than these belong into POST /v1/plans.
    max_together: int = 100

    def with_margin(self, volume_bytes: int, rate_max_bps: int | None, paths: Iterable[Route]) -> int:
        """What to book for so many bytes that an agent moves or holds to their rate (Veeraraghavan et al. 2004, section 4.3).

        A share of the volume for retransmission, and a time at full rate for starts and steps that take effect a little late.
        """
        ceiling = max((route.ceiling_bps for route in paths), default=0)
        rate = ceiling if rate_max_bps is None else min(rate_max_bps, ceiling)
        share = -(-volume_bytes * self.managed_margin_ppm // 1_000_000)
        return min(volume_bytes + share + volume_of(rate, self.managed_margin_us), MAX_VOLUME_BYTES)


def policy_of(settings: "Settings") -> Policy:
    """The policy that a process is configured with: every process that has a desk takes it from here."""
    return Policy(
        hold_us=settings.hold_s * US_PER_S,
        managed_lead_us=settings.managed_lead_ms * 1000,
        replan_lead_us=settings.replan_lead_ms * 1000,
        managed_margin_ppm=settings.managed_margin_ppm,
        managed_margin_us=settings.managed_margin_ms * 1000,
    )
