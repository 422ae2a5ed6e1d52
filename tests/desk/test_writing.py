# SPDX-License-Identifier: Apache-2.0
"""Few rows go to PostgreSQL in one statement, many by COPY: whichever way they took, the tables say the same."""

from typing import Any

import pytest

from broker.core.network import Link
from broker.store import bulk, transfers
from tests.desk.world import GBIT, World

STRANGE = "'\"\\ \\N \\. \t\n\r\x01 {} [] ,; %(ids)s %s ünï 𝄞 \u2028"


@pytest.mark.parametrize("few", [0, 1_000_000], ids=["copied", "one statement"])
async def test_what_was_admitted_is_what_the_tables_say(world: World, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_FEW", few)
    await world.links(Link("L1", "A", "B", GBIT))
    asks: list[dict[str, Any]] = [
        {},
        {"label": STRANGE, "project": "\\N", "metadata": {STRANGE: [None, 1.5, 2**53, True, STRANGE, {}]}},
        {"label": "", "metadata": {}, "priority": -5, "best_effort": True},
        {"hold": True, "rate_max_bps": 10**15, "deadline_us": world.clock() + 10**12},
    ]
    made = await world.admit(*(world.ask(1_000_000, **more) for more in asks))
    async with world.look.transaction() as connection:
        found = await transfers.get_many(connection, [one.id for one in made])
    assert [found[one.id] for one in made] == made
    rows = await world.rows("SELECT after FROM events WHERE action = 'transfer.admitted' ORDER BY seq")
    assert [row.after.get("label") for row in rows] == [None, STRANGE, None, None]
    await world.check()
