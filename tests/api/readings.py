# SPDX-License-Identifier: Apache-2.0
"""What the broker tells, in forms that tests compare."""

from typing import Any

from tests.service import Service, at, checked


async def calendar(service: Service, link: str = "L1", **query: Any) -> list[tuple[str, int, int]]:
    """(begin, capacity, booked) of every step."""
    found = checked(await service.client.get(f"/v1/links/{link}/calendar", params={"from": at(0), "to": at(3600), **query}))
    assert all(step["free_bps"] == step["capacity_bps"] - step["booked_bps"] for step in found["steps"])
    return [(step["begin"], step["capacity_bps"], step["booked_bps"]) for step in found["steps"]]


async def metrics(service: Service) -> dict[str, float]:
    response = await service.client.get("/metrics")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/plain")
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in response.text.splitlines() if line[0] != "#")}
