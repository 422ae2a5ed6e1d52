# SPDX-License-Identifier: Apache-2.0
"""Pairs of links that are the reverse of each other.

Bookings are directed, but traffic is not quite: acknowledgements share the reverse path with other traffic there, and a congested
reverse path slows forward transfers by a tenth and more (Guillier, Soudan and Primet 2007, INRIA RR-6256, section 4.3: of two flows
the last one ended after 875 s instead of 562 s). An operator who checks a link therefore also needs the load on its reverse.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

# The suffixes of the two directions in links that we create: `bwb link create --both` and the enrolment of a host.
_TWINS = (("", "~back"), ("~up", "~down"))


class _Directed(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...


def reverses(links: Iterable[_Directed]) -> dict[str, str]:
    """Link id -> id of the reverse link between the same two nodes, for both directions; links without a reverse are left out.

    Parallel links pair up by name where one is `X` and the other `X~back` (`X~up` and `X~down`), the others in order of id.
    """
    between: dict[tuple[str, str], list[str]] = {}
    for link in links:
        between.setdefault((link.source, link.target), []).append(link.id)
    pairs: dict[str, str] = {}
    for (source, target), forward in between.items():
        backward = between.get((target, source))
        if source < target and backward is not None:
            for one, other in _paired(sorted(forward), sorted(backward)):
                pairs[one], pairs[other] = other, one
    return pairs


def reverse_path(path: Iterable[str], pairs: Mapping[str, str]) -> tuple[str, ...] | None:
    """The reverse of each link, the last one first; None if a link has none."""
    back = [pairs.get(link_id) for link_id in path]
    return None if None in back else tuple(link_id for link_id in reversed(back) if link_id is not None)


def _paired(forward: list[str], backward: list[str]) -> list[tuple[str, str]]:
    free = set(backward)
    pairs = []
    for link_id in forward:
        twin = next((twin for twin in _twins(link_id) if twin in free), None)
        if twin is not None:
            free.discard(twin)
            pairs.append((link_id, twin))
    named = {link_id for link_id, _ in pairs}
    rest = (link_id for link_id in forward if link_id not in named)
    return pairs + list(zip(rest, (link_id for link_id in backward if link_id in free), strict=False))


def _twins(link_id: str) -> list[str]:
    """Candidate ids of the reverse link."""
    return [link_id.removesuffix(mine) + other for pair in _TWINS for mine, other in (pair, pair[::-1]) if link_id.endswith(mine)]
