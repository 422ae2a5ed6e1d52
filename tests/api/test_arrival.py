# SPDX-License-Identifier: Apache-2.0
from fastapi import Request

from broker.api.arrival import Arrival, server_times
from broker.core.units import parse_time


async def test_the_middle_of_the_work_and_how_long_it_took() -> None:
    now = [1_767_225_600_000_000]
    found = []

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        now[0] += 15_000  # a database that thinks
        found.append(server_times(Request(scope), now[0]))

    await Arrival(app, lambda: now[0])({"type": "http"}, None, None)  # type: ignore[arg-type]
    [times] = found
    assert times["server_took_us"] == 15_000
    assert parse_time(str(times["server_time"])) == 1_767_225_600_007_500


def test_a_clock_that_was_set_back_took_no_time() -> None:
    assert server_times(Request({"type": "http", "arrived_us": 10}), 3)["server_took_us"] == 0
