# SPDX-License-Identifier: Apache-2.0
"""One path through every layer."""

from tests.service import Service, checked


async def test_book_and_audit(service: Service) -> None:
    await service.link()
    first = await service.book()
    assert first["state"] == "RESERVED"
    assert len(first["plan"]["segments"]) == 1
    await service.audit()
    done = checked(await service.client.post(f"/v1/transfers/{first['id']}/cancel"))
    assert done["state"] == "CANCELED"
    await service.audit()
