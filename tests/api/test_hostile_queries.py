# SPDX-License-Identifier: Apache-2.0
"""Query parameters of every route, taken from the contract: whatever cursor or time a caller makes up, the answer is 2xx or a 4xx that names it."""

import base64
import logging
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.core.calendar import Calendar
from broker.core.units import MAX_TIME_US, MIN_TIME_US, format_time, span_edges
from broker.views.link_load import shares
from broker.views.link_use import Use, together
from tests.service import START_US, Service

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
)
TIMES = st.one_of(
    st.sampled_from([MIN_TIME_US, MIN_TIME_US + 1, MAX_TIME_US - 1, MAX_TIME_US, 0, START_US]),
    st.integers(MIN_TIME_US, MAX_TIME_US),
).map(format_time)
COUNTS = st.sampled_from([0, 1, 2, 3, 997, 1000, 5000, 100_000, 2**63, 2**64])

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _encoded(document: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)).decode().rstrip("=")


def _views(service: Service, *wanted: str) -> dict[str, dict[str, Any]]:
    """Path of each GET that takes one of these parameters -> its parameters by name."""
    found = {}
    for path, item in service.app.openapi()["paths"].items():
        parameters = {p["name"]: p["schema"] for p in item.get("get", {}).get("parameters", ()) if p["in"] == "query"}
        if not parameters.keys().isdisjoint(wanted):
            found[path.replace("{link_id}", "L1")] = parameters
    return found


def _names(response: httpx.Response, given: dict[str, Any]) -> None:
    assert response.status_code in (200, 422), (response.url, response.text)
    if response.status_code == 422:
        assert {error["field"] for error in response.json()["errors"]} <= given.keys() | {"from", "to"}, response.text


def _sorts(schema: dict[str, Any]) -> list[str]:
    return [str(item) for item in schema.get("enum", ())]


@pytest.fixture
async def busy(service: Service) -> Service:
    await service.link()
    await service.book()
    return service


async def test_what_was_reported(busy: Service) -> None:
    """The two requests of the issue, which were answered 500."""
    last = format_time(MAX_TIME_US)
    cursor = _encoded(["-created", True, "x"])
    for path, field in ((f"/v1/transfers?cursor={cursor}", "cursor"), (f"/v1/network/load?at={last}", "at")):
        response = await busy.client.get(path)
        assert response.status_code == 422, response.text
        assert [error["field"] for error in response.json()["errors"]] == [field]


async def test_cursors_of_no_broker(busy: Service) -> None:
    views = _views(busy, "cursor")
    assert {"/v1/transfers", "/v1/schedule", "/v1/audit-log", "/v1/plans", "/v1/simulations"} <= views.keys()
    for path, parameters in views.items():
        for sort in _sorts(parameters.get("sort", {})) or [path.rsplit("/", 1)[-1]]:
            asked = {"sort": sort} if "sort" in parameters else {}
            key: Any
            for key in (True, None, 1.5, "x", -1, 2**62, 2**63, 10**30, [], "\U0010ffff", "\0"):
                content = f'["{sort}",{orjson.dumps(key).decode() if key != 10**30 else 10**30},"x"]'
                cursor = base64.urlsafe_b64encode(content.encode()).decode()
                _names(await busy.client.get(path, params={**asked, "cursor": cursor}), {"cursor": 1})


@QUICK
@given(data=st.data())
async def test_any_cursor(busy: Service, data: st.DataObject) -> None:
    path, parameters = data.draw(st.sampled_from(sorted(_views(busy, "cursor").items(), key=lambda view: view[0])))
    sorts = _sorts(parameters.get("sort", {}))
    asked = {"sort": data.draw(st.sampled_from(sorts))} if sorts else {}
    order = st.sampled_from([*asked.values(), path.rsplit("/", 1)[-1]])
    made_up = st.one_of(st.tuples(order, SCALARS, SCALARS), st.lists(SCALARS, max_size=4), SCALARS)
    try:
        cursor = _encoded(data.draw(made_up))
    except TypeError:  # orjson writes no larger integers
        return
    _names(await busy.client.get(path, params={**asked, "cursor": cursor}), {"cursor": cursor})


@QUICK
@given(data=st.data())
async def test_any_time_and_any_count(busy: Service, data: st.DataObject) -> None:
    views = _views(busy, "from", "to", "at", "ended_after")
    assert {"/v1/transfers", "/v1/schedule", "/v1/audit-log", "/v1/network/load", "/v1/links/L1/calendar"} <= views.keys()
    path, parameters = data.draw(st.sampled_from(sorted(views.items(), key=lambda view: view[0])))
    given_here: dict[str, Any] = {}
    for name in parameters.keys() & {"from", "to", "at", "ended_after"}:
        given_here[name] = data.draw(st.none() | TIMES)
    for name in parameters.keys() & {"steps", "points", "spans", "top", "limit"}:
        given_here[name] = data.draw(st.none() | COUNTS)
    given_here = {name: value for name, value in given_here.items() if value is not None}
    _names(await busy.client.get(path, params=given_here), given_here)


@given(begin=st.integers(MIN_TIME_US, MAX_TIME_US - 2000), span=st.integers(1000, MAX_TIME_US), steps=st.integers(1, 1000))
@settings(max_examples=60, deadline=None)
def test_spans_are_exact_however_long(begin: int, span: int, steps: int) -> None:
    end = min(begin + span, MAX_TIME_US)
    edges = span_edges(begin, end, steps)
    assert len(edges) == steps + 1 and edges[0] == begin and edges[-1] == end
    widths = np.diff(np.array(edges, object))
    assert max(widths) - min(widths) <= 1


def test_a_booking_shows_in_its_own_span_of_ten_thousand_years() -> None:
    """It showed in another: the product of span and steps had wrapped."""
    calendar = Calendar([(-(2**61), 10)])
    calendar.book(START_US, START_US + 1_000_000, 5)
    edges = np.array(span_edges(0, MAX_TIME_US, 1000)[:-1], np.int64)
    expected = START_US * 1000 // MAX_TIME_US
    found = shares(calendar, edges, MAX_TIME_US)
    assert [index for index, share in enumerate(found) if share] == [expected]


def test_thinned_out_steps_lie_inside_the_range() -> None:
    """Floating point put edges up to 16 us beside the instants that far ahead."""
    begin, end = MAX_TIME_US - 10_001, MAX_TIME_US
    parts = [Use(0, 0, [(begin + 10 * i, begin + 10 * i + 5, 7) for i in range(1000)])]
    stretches = together(parts, begin, end, 10).stretches
    edges = np.array(stretches)[:, :2]
    assert edges.min() == begin and edges.max() <= end
    assert [stretch[0] for stretch in stretches] == [begin + (end - begin) * index // 10 for index in range(10)]


async def test_a_fault_is_logged_once_in_full_and_never_shown(
    busy: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("the cause " + "x" * 100_000)

    monkeypatch.setattr(type(busy.app.state.broker.link_load), "load", fails)
    with caplog.at_level(logging.ERROR):
        answers = [await busy.client.get("/v1/network/load") for _ in range(20)]
    for answer in answers:
        assert answer.status_code == 500 and answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text and "cause" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
    written = [logging.Formatter().format(record) for record in caplog.records]
    assert "Traceback" in written[0] and "the cause" in written[0]
    assert sum(map(len, written)) < 25_000
    assert all("\n" not in line for line in written[1:])
