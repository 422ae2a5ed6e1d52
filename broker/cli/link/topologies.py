# SPDX-License-Identifier: Apache-2.0
"""Real and synthetic networks by name, from the package topohub (SNDlib, Internet Topology Zoo, backbones, CAIDA, Gabriel graphs).

They include places and distances, but no capacities: the caller provides these.
"""

import re
import unicodedata
from collections import Counter
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from broker.core.network import Link

_LONGEST_NAME = 60  # a link's id, with 128 characters, contains two of them and a "--"


class UnknownTopology(Exception):
    """There is no network of that name; the message lists similar names."""

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, names(), n=3, cutoff=0.5)
        also = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"{name!r} is no file, and no network of topohub{also} `bwb link import --list` names them all")


class Equal(NamedTuple):
    """The common properties of all links of an imported network."""

    capacity_bps: int
    mtu_bytes: int | None = None
    channel_bps: int | None = None
    slot_us: int = 1
    metric: int | None = None  # None: the distance


def names(search: str = "") -> list[str]:
    """The group/name of every network that contains `search`."""
    found = sorted(_walk(files("topohub") / "data", ""))
    return [name for name in found if search.casefold() in name.casefold()]


def links(name: str, equal: Equal) -> list[Link]:
    """Each adjacency as two directed links, whose metric is the distance in whole kilometres, at least 1. Raises UnknownTopology."""
    if name not in names():
        raise UnknownTopology(name)
    import topohub  # type: ignore[import-untyped]

    graph = topohub.get(name)
    nodes = _node_names(graph["nodes"])
    made: dict[str, Link] = {}
    for edge in graph["edges"]:
        metric = equal.metric if equal.metric is not None or "dist" not in edge else max(round(edge["dist"]), 1)
        ends = nodes[edge["source"]], nodes[edge["target"]]
        for source, target in (ends, ends[::-1]):
            link_id = f"{source}--{target}"
            number = 2
            while link_id in made:
                link_id, number = f"{source}--{target}#{number}", number + 1
            made[link_id] = Link(
                link_id,
                source,
                target,
                equal.capacity_bps,
                mtu_bytes=equal.mtu_bytes,
                channel_bps=equal.channel_bps,
                slot_us=equal.slot_us,
                metric=metric,
            )
    return list(made.values())


def places(name: str) -> list[dict[str, Any]]:
    """The places of the nodes of a network, with the names that `links` gives them."""
    import topohub

    nodes = topohub.get(name)["nodes"]
    named = _node_names(nodes)
    found: list[tuple[dict[str, Any], list[float]]] = [(node, list(node.get("pos") or ())) for node in nodes]
    return [
        {"id": named[node["id"]], "name": node.get("name") or None, "longitude": float(at[0]), "latitude": float(at[1])}
        for node, at in found
        if len(at) == 2 and -180 <= at[0] <= 180 and -90 <= at[1] <= 90
    ]


def _walk(folder: Traversable, prefix: str) -> list[str]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            found.append(prefix + entry.name.removesuffix(".json"))
    return found


def _node_names(nodes: list[dict[str, Any]]) -> dict[Any, str]:
    """A valid and unique name for each node: in ASCII, without blanks."""
    plain = {node["id"]: _plain(str(node.get("name") or "")) for node in nodes}
    times = Counter(plain.values())
    return {key: name if name and times[name] == 1 else f"{name or 'node'}-{_plain(str(key))}" for key, name in plain.items()}


def _plain(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9.]+", "-", ascii_text)[:_LONGEST_NAME].strip("-.")
