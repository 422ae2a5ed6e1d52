# SPDX-License-Identifier: Apache-2.0
"""What one item of a batch says of another."""

from tests.service import Service, checked


async def test_a_refusal_names_what_stands_in_its_way_though_it_came_with_it(service: Service) -> None:
    await service.link()
    times = {"not_before": "2026-01-01T10:00:00Z", "deadline": "2026-01-01T10:00:01Z"}
    ask = {"source": "A", "destination": "B", "volume_bytes": 125_000_000, **times}
    first, second = checked(await service.client.post("/v1/transfers/batch", json=[ask, ask]))["items"]
    assert (first["status"], second["status"]) == (201, 409)
    assert second["problem"]["binding"]["reservations"] == [first["transfer"]["id"]]
