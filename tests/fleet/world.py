# SPDX-License-Identifier: Apache-2.0
"""Two enrolled hosts, h1 at A and h2 at B, and their agents as clients."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from broker.core.units import format_time
from tests.service import Service, checked

VOLUME = 1_250_000_000  # ten seconds of 1 Gbit/s


@dataclass
class Fleet:
    service: Service
    agents: dict[str, httpx.AsyncClient]

    async def book(self, **more: Any) -> Any:
        """A managed transfer from h1 to h2."""
        given = {"source": "h1", "destination": "h2", "volume_bytes": VOLUME, "payload": {"path": "x.h5"}}
        return checked(await self.service.client.post("/v1/transfers", json=given | more), 201)

    async def document(self, host: str) -> Any:
        return checked(await self.agents[host].get(f"/v1/agents/{host}/assignments"))

    async def report(self, host: str, transfer: dict[str, Any], kind: str, sequence: int, **more: Any) -> str:
        """Send one report; "accepted", or the code with which it was ignored."""
        report = {"transfer_id": transfer["id"], "sequence": sequence, "at": format_time(self.service.clock.now_us), "kind": kind}
        taken = await self.send(host, report | more)
        assert len(taken["accepted"]) + len(taken["ignored"]) == 1
        return "accepted" if taken["accepted"] else str(taken["ignored"][0]["code"])

    async def send(self, host: str, *reports: dict[str, Any]) -> Any:
        return checked(await self.agents[host].post(f"/v1/agents/{host}/reports", json={"reports": reports}))

    async def transfer(self, transfer: dict[str, Any]) -> Any:
        return checked(await self.service.client.get(f"/v1/transfers/{transfer['id']}"))


@asynccontextmanager
async def enrolled(service: Service) -> AsyncIterator[Fleet]:
    """In the end no invariant is broken."""
    await service.link()
    yield Fleet(service, {"h1": await service.enrol("h1", "A"), "h2": await service.enrol("h2", "B")})
    await service.audit()
