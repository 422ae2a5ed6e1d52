# SPDX-License-Identifier: Apache-2.0
"""A link as NET.json, the API and the audit log write it (design, section 4), and back."""

from collections.abc import Mapping
from typing import Any

from broker.core.network import Link
from broker.core.units import format_time, parse_time


def document_of(link: Link) -> dict[str, Any]:
    """Without its windows: those come and go by themselves."""
    return {
        "id": link.id,
        "source": link.source,
        "target": link.target,
        "capacity_bps": link.capacity_bps,
        "mtu_bytes": link.mtu_bytes,
        "channel_bps": link.channel_bps,
        "slot_us": link.slot_us,
        "metric": link.metric,
        "available": [{"from": format_time(begin), "bps": bps} for begin, bps in link.available],
    }


def link_of(document: Mapping[str, Any]) -> Link:
    """From a document of the right shape, where what has a default may be missing: what people write is checked where it comes in."""
    steps = document.get("available") or ()
    return Link(**{**document, "available": tuple((parse_time(step["from"]), step["bps"]) for step in steps)})
