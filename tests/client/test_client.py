# SPDX-License-Identifier: Apache-2.0
"""BrokerClient against a broker that restarts, loses answers and says no."""

import ast
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import broker.client
from broker.client import BrokerClient, BrokerUnreachable, NoBroker, ProblemError, default_state_dir, locate
from broker.settings import state_dir
from tests.live import Live, Server

pytestmark = pytest.mark.real_time

LINK = {"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}
REQUEST = {"source": "A", "destination": "B", "volume_bytes": 10**9}


class Wire(httpx.BaseTransport):
    """The network between client and broker: `disturb` may raise instead of delivering, or after it."""

    def __init__(self, disturb: Callable[[int, httpx.Request, Callable[[], httpx.Response]], httpx.Response]) -> None:
        self._real = httpx.HTTPTransport()
        self._disturb = disturb
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._disturb(len(self.requests), request, lambda: self._real.handle_request(request))


def disturbed(client: BrokerClient, disturb: Callable[[int, httpx.Request, Callable[[], httpx.Response]], httpx.Response]) -> Wire:
    wire = Wire(disturb)
    headers = client._http.headers
    client._http = httpx.Client(base_url=client.url, headers=headers, transport=wire)
    return wire


# -- finding it --------------------------------------------------------------------------------------------------------------------------


def test_the_default_state_directory_is_that_of_bwb_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BWB_STATE_DIR", raising=False)
    assert default_state_dir() == state_dir()
    monkeypatch.setenv("BWB_STATE_DIR", str(tmp_path))
    assert default_state_dir() == state_dir() == tmp_path


def test_a_state_directory_that_is_given_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwb.json").write_text('{"url": "http://here:1", "pids": {}}')
    (tmp_path / "admin.token").write_text("bwb_secret\n")
    monkeypatch.setenv("BWB_URL", "http://there:2/")
    monkeypatch.setenv("BWB_TOKEN", "bwb_other")
    assert locate(tmp_path).url == "http://here:1"
    assert locate().url == "http://there:2"
    assert "bwb_" not in repr(locate())
    (tmp_path / "bwb.json").write_text("[]")
    with pytest.raises(NoBroker, match="cannot be read as a state directory"):
        locate(tmp_path)


# -- answers -----------------------------------------------------------------------------------------------------------------------------


def test_the_whole_life_of_a_transfer(live: Live) -> None:
    with BrokerClient.find(live.state_dir) as client:
        client.create_link(LINK)
        quotes = client.quote(REQUEST, ["vbls", "fbls"])
        assert [quote["admitted"] for quote in quotes] == [True, True]
        made = client.submit(REQUEST | {"hold": True})
        assert client.act(made["id"], "commit")["state"] == "RESERVED"
        changed = client.change(made["id"], {"label": "x"}, revision=client.transfer(made["id"])["revision"])
        assert changed["label"] == "x"
        with pytest.raises(ProblemError) as refused:
            client.change(made["id"], {"label": "y"}, revision=1)
        assert refused.value.status == 412
        items = client.submit_batch([REQUEST, REQUEST | {"source": "nowhere"}])
        assert [item["status"] for item in items] == [201, 422]
        assert [t["id"] for t in client.transfers(page_size=1)] == [items[0]["transfer"]["id"], made["id"]]  # type: ignore[index]
        assert list(client.transfers(state="CANCELED")) == []
        with pytest.raises(TimeoutError):
            client.wait(made["id"], timeout_s=0)
        client.act(made["id"], "cancel")
        assert client.wait(made["id"])["state"] == "CANCELED"
        assert [event["action"] for event in client.history(made["id"])][-1] == "transfer.canceled"
        assert client.audit()["clean"]


def test_a_refusal_carries_the_document(live: Live) -> None:
    with live.client() as client:
        client.create_link(LINK)
        with pytest.raises(ProblemError) as refused:
            client.submit(REQUEST | {"volume_bytes": 10**15, "deadline": "2100-01-01T00:00:00Z", "rate_max_bps": 1})
        assert (refused.value.status, refused.value.code) == (409, "infeasible")
        assert refused.value.document["binding"]["link"] == "L1"
        assert {offer["kind"] for offer in refused.value.document["counter_offers"]} >= {"largest_volume"}
        with pytest.raises(ProblemError, match="not-found"):
            client.link("a/../b?c")


def test_what_answers_may_be_no_broker(live: Live) -> None:
    with live.client() as client:
        disturbed(client, lambda *_: httpx.Response(502, text="<h1>Bad gateway</h1>"))
        with pytest.raises(ProblemError, match="Bad gateway"):
            client.links()
        disturbed(client, lambda *_: httpx.Response(200, text="<h1>Welcome</h1>"))
        with pytest.raises(BrokerUnreachable, match="is no broker"):
            client.links()


# -- lost and late answers ---------------------------------------------------------------------------------------------------------------


def test_a_submission_whose_answer_is_lost_is_booked_once(live: Live) -> None:
    def lose_the_first_answer(number: int, _: httpx.Request, deliver: Callable[[], httpx.Response]) -> httpx.Response:
        response = deliver()
        if number == 1:
            response.read()
            raise httpx.ReadError("connection reset")
        return response

    with live.client() as client:
        client.create_link(LINK)
        wire = disturbed(client, lose_the_first_answer)
        made = client.submit(REQUEST)
        assert len({request.headers["Idempotency-Key"] for request in wire.requests}) == 1
        assert len(wire.requests) == 2
        assert [transfer["id"] for transfer in client.transfers()] == [made["id"]]


def test_what_has_no_key_is_not_sent_twice_once_it_may_have_arrived(live: Live) -> None:
    def lose(_: int, __: httpx.Request, deliver: Callable[[], httpx.Response]) -> httpx.Response:
        deliver().read()
        raise httpx.ReadError("connection reset")

    with live.client() as client:
        wire = disturbed(client, lose)
        with pytest.raises(BrokerUnreachable, match="connection reset"):
            client.create_link(LINK)
        assert len(wire.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_later_is_waited_out_as_long_as_it_says(live: Live, status: int) -> None:
    def away(number: int, _: httpx.Request, deliver: Callable[[], httpx.Response]) -> httpx.Response:
        return deliver() if number > 1 else httpx.Response(status, headers={"Retry-After": "1"}, json={"type": "x/unavailable"})

    with live.client() as client:
        client.create_link(LINK)
        disturbed(client, away)
        begin = time.monotonic()
        assert client.submit(REQUEST)["state"] == "RESERVED"
        assert 1 <= time.monotonic() - begin < 4
        disturbed(client, lambda *_: httpx.Response(status, headers={"Retry-After": "9"}, json={"type": "x/unavailable"}))
        with pytest.raises(ProblemError, match="unavailable"):
            client.links()


def test_a_broker_that_restarts_is_waited_for(live: Live, server: Server) -> None:
    with live.client() as client:
        client.create_link(LINK)
        server.stop()
        restart = threading.Timer(0.5, server.start)
        restart.start()
        try:
            assert client.submit(REQUEST)["state"] == "RESERVED"
        finally:
            restart.join()


# -- events ------------------------------------------------------------------------------------------------------------------------------


def test_events_come_in_order_and_without_gaps_through_a_restart(live: Live, server: Server) -> None:
    with live.client() as client:
        client.create_link(LINK)
        seen: list[Any] = []
        two, four = threading.Event(), threading.Event()

        def listen() -> None:
            with live.client() as listener:
                for event in listener.events():
                    if event["subject_kind"] == "transfer":
                        seen.append(event)
                    two.set() if len(seen) == 2 else None
                    if len(seen) == 4:
                        four.set()
                        return

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        time.sleep(0.5)  # until it listens; nothing tells
        ids = [client.submit(REQUEST)["id"] for _ in range(2)]
        assert two.wait(10)
        server.stop()
        server.start()
        ids += [client.submit(REQUEST)["id"] for _ in range(2)]
        assert four.wait(15)
        assert [event["subject"] for event in seen] == ids
        thread.join(5)


def test_events_of_one_subject(live: Live) -> None:
    with live.client() as client:
        client.create_link(LINK)
        first, second = client.submit(REQUEST)["id"], client.submit(REQUEST)["id"]
        client.act(second, "cancel")
        stream = client.events(subject=second, last_event_id="0-0")
        assert [next(stream)["action"] for _ in range(2)] == ["transfer.admitted", "transfer.canceled"]
        stream.close()  # type: ignore[attr-defined]
        assert first != second


def test_events_of_a_broker_that_is_gone_end(live: Live, server: Server) -> None:
    server.stop()
    client = BrokerClient(live.url, live.token, patience_s=0.3)
    with pytest.raises(BrokerUnreachable):
        next(client.events())
    server.start()


def test_what_operators_look_at(live: Live) -> None:
    client = live.client()
    client.put_topology([{"id": "ov", "source": "OA", "target": "OB", "capacity_bps": 10**9}], prune=False,
                        nodes=[{"id": "OA", "name": "One", "latitude": 46.2, "longitude": 6.1}])  # fmt: skip
    assert {node["id"]: node["name"] for node in client.topology()["nodes"]} == {"OA": "One"}
    made = client.submit({"source": "OA", "destination": "OB", "volume_bytes": 125_000_000 * 60, "project": "overview"})
    assert client.overview()["promises"]["live"]["kept"] >= 1
    assert {load["id"]: load["shares"] for load in client.network_load(steps=2)["links"]}["ov"] == [1.0, 0.0]
    ((use),) = client.link_bookings("ov")["transfers"]
    assert (use["id"], use["source"]) == (made["id"], "OA")
    (scheduled,) = client.schedule(link="ov")
    assert scheduled["id"] == made["id"] and scheduled["paths"] == [["ov"]]
    (listed,) = client.transfers(project="overview", sort="finish", outlook="true")
    assert (outlook := listed["outlook"]) is not None and outlook["promise"] == "kept"
    client.act(made["id"], "cancel")


def test_the_client_stands_alone() -> None:
    """It is what a workflow manager imports: nothing of the broker but units and states."""
    for file in Path(broker.client.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("broker"):
                assert (node.module or "").startswith(("broker.client", "broker.core.units", "broker.core.transfer")), file
