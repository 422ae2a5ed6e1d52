# SPDX-License-Identifier: Apache-2.0
"""Conversion between a link and its document in NET.json, the API and the audit log (design, section 4)."""

from collections.abc import Mapping
from typing import Any

from broker.core.network import Link
from broker.core.units import format_time, parse_time


def document_of(link: Link) -> dict[str, Any]:
    """The document of `link` without its windows, which begin and end independently of the link."""
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
    """The link of a document; fields with a default may be missing. Input from users is validated earlier, where it is read."""
    steps = document.get("available") or ()
    return Link(**{**document, "available": tuple((parse_time(step["from"]), step["bps"]) for step in steps)})
