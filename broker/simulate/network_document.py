# SPDX-License-Identifier: Apache-2.0
"""A link as NET.json and the API write it, once it has been checked there."""

from collections.abc import Mapping
from typing import Any

from broker.core.network import Link
from broker.core.units import parse_time


def link_of(document: Mapping[str, Any]) -> Link:
    """Times of `available` as RFC 3339 or in microseconds."""
    return Link(
        id=document["id"],
        source=document["source"],
        target=document["target"],
        capacity_bps=document["capacity_bps"],
        mtu_bytes=document.get("mtu_bytes"),
        channel_bps=document.get("channel_bps"),
        slot_us=document.get("slot_us", 1),
        metric=document.get("metric"),
        available=tuple((_instant(step.get("from", step.get("from_"))), step["bps"]) for step in document.get("available", ())),
    )


def _instant(value: str | int) -> int:
    return value if isinstance(value, int) else parse_time(value)
