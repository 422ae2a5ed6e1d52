# SPDX-License-Identifier: Apache-2.0
"""Networks of several paths, one number per microsecond: what a single path can do is asked of `tests.core.grid`, path by path."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.network import Link, Network
from broker.core.plan import Plan, Refusal, verify
from broker.core.request import Options, Request
from broker.planners.signature import Planner
from tests.core.grid import GridLink, Scenario, grid_links, rates

# Parallel links, a way around, and shapes in which paths share their first, last or middle link, or cross.
SHAPES: dict[str, list[str]] = {
    "parallel": ["SD", "SD", "SD"],
    "diamond": ["SA", "SB", "AD", "BD"],
    "shared first": ["SA", "AD", "AD", "AB", "BD"],
    "shared last": ["SA", "SB", "AC", "BC", "CD"],
    "crossing": ["SA", "SB", "AB", "BA", "AD", "BD"],
    "two hops, parallel": ["SA", "SA", "AD", "AD"],
    "ladder": ["SA", "SB", "AC", "BC", "CE", "CF", "ED", "FD", "AE"],
}


@dataclass(frozen=True)
class Mesh:
    links: tuple[tuple[GridLink, str], ...]  # with the nodes it joins
    request: Request

    @property
    def network(self) -> Network:
        return Network(self._links())

    def _links(self) -> list[Link]:
        return [link.link(*nodes) for link, nodes in self.links]

    @property
    def calendars(self) -> dict[str, Calendar]:
        return {link.id: link.calendar() for link, _ in self.links}

    def paths(self, min_bps: int = 1) -> list[tuple[GridLink, ...]]:
        """The loop-free paths that a planner may choose from, in order, as many as the request allows (tests/core/test_paths.py).

        Over links that reach `min_bps` and the request's `rate_min_bps` at all: the others are gone around.
        """
        least = max(min_bps, self.request.rate_min_bps or 1)
        links = {link.id: link for link, _ in self.links}
        small = frozenset(name for name, link in links.items() if max(int(link.levels.max()), 1) < least)
        routes = self.network.routes("S", "D", self.request.options.paths, small)
        return [tuple(links[link_id] for link_id in route.path) for route in routes]

    def on(self, path: tuple[GridLink, ...]) -> Scenario:
        """The same request on one path alone."""
        alone = replace(self.request, source="N0", destination=f"N{len(path)}", options=replace(self.request.options, paths=1))
        return Scenario(path, alone)

    def scenarios(self, min_bps: int = 1) -> list[Scenario]:
        return [self.on(path) for path in self.paths(min_bps)]

    def asking(self, **changes: object) -> "Mesh":
        return Mesh(self.links, replace(self.request, **changes))  # type: ignore[arg-type]

    def planned(self, planner: Planner) -> Plan | Refusal:
        answer = planner.plan(self.request, self.network, self.calendars)
        if isinstance(answer, Plan):
            verify(self.request, answer, self.network.links, self.calendars)
        return answer


@st.composite
def meshes(draw: st.DrawFn, slots: bool = True) -> Mesh:
    """Requests for a volume between S and D."""
    base_us = draw(st.sampled_from([0, -100, 1_767_225_600_000_000]))
    channels: list[int | None] = draw(st.sampled_from([[None], [None], [None, 1_000_000, 3_000_000], [None, 700_001]]))
    links = []
    for i, nodes in enumerate(SHAPES[draw(st.sampled_from(sorted(SHAPES)))]):
        link = draw(grid_links(i, base_us, channels))
        links.append((link if slots else replace(link, slot_us=1), nodes))
    not_before = base_us + draw(st.integers(-30, 150))
    low, high = sorted((draw(rates), draw(rates)))
    return Mesh(
        tuple(links),
        Request(
            id="r",
            source="S",
            destination="D",
            volume_bytes=draw(st.integers(1, 120)),
            not_before_us=not_before,
            rate_max_bps=draw(st.sampled_from([None, high])),
            rate_min_bps=draw(st.sampled_from([None, None, low])),
            deadline_us=draw(st.one_of(st.none(), st.integers(1, 300).map(lambda after: not_before + after))),
            options=Options(paths=draw(st.sampled_from([1, 2, 3, 4, 16]))),
        ),
    )
