# SPDX-License-Identifier: Apache-2.0
"""Calls about links and the network."""

from collections.abc import Sequence
from typing import Any, cast

from broker.client.connection import LONG_TIMEOUT, Connection, Json, part
from broker.client.documents import Calendar, Link, LinkBookings, LinkChange, LinkDeleted, NetworkLoad, Topology, TopologyChange


class Network(Connection):
    """The network, its bookings, and its windows."""

    def links(self) -> list[Link]:
        """All links."""
        return cast(list[Link], self._read("GET", "links"))

    def link(self, link_id: str) -> Link:
        """The link."""
        return cast(Link, self._read("GET", f"links/{part(link_id)}"))

    def topology(self) -> Topology:
        """The network without hosts' NICs and windows, and the known names and places of its nodes."""
        return cast(Topology, self._read("GET", "topology"))

    def put_topology(
        self,
        links: Sequence[Json],
        *,
        nodes: Sequence[Json] | None = None,
        prune: bool = True,
        on_broken: str = "refuse",
        preview: bool = False,
    ) -> TopologyChange:
        """Set the network to `links`; with `prune`, links that are not among them are deleted. `preview` changes nothing.

        `nodes`: their names and places, {id, name, latitude, longitude}; if left out, the known ones stay.
        """
        body: dict[str, Any] = {"links": [dict(link) for link in links], "prune": prune, "on_broken": on_broken}
        if nodes is not None:
            body["nodes"] = [dict(node) for node in nodes]
        parameters = {"preview": "true"} if preview else {}
        answer = self._request("PUT", "topology", repeatable=True, json=body, params=parameters, timeout=LONG_TIMEOUT)
        return cast(TopologyChange, answer)

    def create_link(self, link: Json) -> Link:
        """Create a link (as in NET.json)."""
        return cast(Link, self._write("POST", "links", json=dict(link)))

    def change_link(self, link_id: str, fields: Json, *, preview: bool = False) -> LinkChange:
        """Change a link. Capacity below bookings is refused (`breaks-promises`) unless `on_broken="replan"`. `preview` changes nothing."""
        parameters = {"preview": "true"} if preview else {}
        answer = self._write("PATCH", f"links/{part(link_id)}", json=dict(fields), params=parameters, timeout=LONG_TIMEOUT)
        return cast(LinkChange, answer)

    def delete_link(self, link_id: str, *, on_broken: str = "refuse", preview: bool = False) -> LinkDeleted | None:
        """Delete a link; returns the effect on its transfers, or None without `on_broken="replan"` and `preview`."""
        parameters = {"on_broken": on_broken} | ({"preview": "true"} if preview else {})
        answer = self._write("DELETE", f"links/{part(link_id)}", params=parameters, timeout=LONG_TIMEOUT)
        return cast(LinkDeleted | None, answer)

    def calendar(
        self, link_id: str, begin: str | None = None, end: str | None = None, points: int | None = None, reverse: bool = False
    ) -> Calendar:
        """Steps of capacity, booked and free rate; by default of the next 24 hours. `reverse` adds the bookings of the reverse link."""
        wanted = {"from": begin, "to": end, "points": points, "reverse": "true" if reverse else None}
        parameters = {name: value for name, value in wanted.items() if value is not None}
        return cast(Calendar, self._read("GET", f"links/{part(link_id)}/calendar", params=parameters))

    def link_bookings(self, link_id: str, begin: str | None = None, end: str | None = None, top: int = 50) -> LinkBookings:
        """The bookings of a link, by default in the next 24 hours: the `top` transfers individually, all others together."""
        parameters = {name: value for name, value in {"from": begin, "to": end, "top": top}.items() if value is not None}
        return cast(LinkBookings, self._read("GET", f"links/{part(link_id)}/bookings", params=parameters))

    def network_load(self, begin: str | None = None, end: str | None = None, steps: int = 96) -> NetworkLoad:
        """The largest booked share of every link in each of `steps` spans, by default of the next 24 hours."""
        parameters = {name: value for name, value in {"from": begin, "to": end, "steps": steps}.items() if value is not None}
        return cast(NetworkLoad, self._read("GET", "network/load", params=parameters))

    def add_window(self, link_id: str, window: Json, *, preview: bool = False) -> LinkChange:
        """Reduce the capacity of a link for a limited time; `preview`: only return the effect."""
        parameters = {"preview": "true"} if preview else {}
        answer = self._write("POST", f"links/{part(link_id)}/windows", json=dict(window), params=parameters, timeout=LONG_TIMEOUT)
        return cast(LinkChange, answer)

    def remove_window(self, link_id: str, window_id: str, *, preview: bool = False) -> LinkChange:
        """Remove a window; `preview`: only return the effect."""
        parameters = {"preview": "true"} if preview else {}
        return cast(LinkChange, self._write("DELETE", f"links/{part(link_id)}/windows/{part(window_id)}", params=parameters))
