# SPDX-License-Identifier: Apache-2.0
"""PUT /v1/topology: the network becomes what the document says, in one step; and previews of every change of the network."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from broker.core.units import parse_time
from tests.api.problems import problem
from tests.service import Clock, Service, at, checked

ESNET = Path(__file__).parents[1] / "data/esnet-network.json"
ALL_DAY = "calendar?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"
PLACES = ("links", "topology", "transfers", "audit-log", "hosts", f"links/AB/{ALL_DAY}", f"links/AC/{ALL_DAY}")


def link(link_id: str, capacity_bps: int = 10**9, **more: Any) -> dict[str, Any]:
    return {"id": link_id, "source": link_id[0], "target": link_id[1], "capacity_bps": capacity_bps, **more}


TRIANGLE = [link("AB"), link("AC"), link("CB")]


async def put(service: Service, links: list[dict[str, Any]], params: Any = None, headers: Any = None, **more: Any) -> Any:
    return await service.client.put("/v1/topology", json={"links": links, **more}, params=params, headers=headers)


async def everything(service: Service) -> list[Any]:
    fixed = {"X-Request-ID": "look"}  # a problem names its request
    return [(await service.client.get(f"/v1/{place}", headers=fixed)).json() for place in PLACES]


async def test_the_network_becomes_what_the_document_says(service: Service) -> None:
    full = link("AB", mtu_bytes=9000, channel_bps=10**8, slot_us=1000, metric=3, available=[{"from": at(0), "bps": 4 * 10**8}])
    first = checked(await put(service, [full, link("BC"), link("CD")]))
    nothing = {"cut_off": [], "replanned": [], "broken": [], "outcomes": [], "preview": False}
    assert first == {"created": ["AB", "BC", "CD"], "changed": [], "deleted": [], "unchanged": 0, "revision": 1} | nothing
    plain: dict[str, Any] = {"mtu_bytes": None, "channel_bps": None, "slot_us": 1, "metric": None, "available": []}
    shown = await service.client.get("/v1/topology")
    assert checked(shown) == {"links": [full, link("BC") | plain, link("CD") | plain], "nodes": [], "revision": 1}

    second = checked(await put(service, [full, link("BC", 5), link("DE")]))
    assert [second[name] for name in ("created", "changed", "deleted", "unchanged")] == [["DE"], ["BC"], ["CD"], 1]
    assert [item["id"] for item in checked(await service.client.get("/v1/links"))] == ["AB", "BC", "DE"]
    third = checked(await put(service, [link("CD")], prune=False))
    assert [third[name] for name in ("created", "changed", "deleted", "unchanged")] == [["CD"], [], [], 3]
    assert len(checked(await service.client.get("/v1/topology"))["links"]) == 4
    log = checked(await service.client.get("/v1/audit-log", params={"search": "CD"}))["items"]
    assert [event["action"] for event in log] == ["link.created", "link.deleted", "link.created"]


async def test_the_same_document_twice_changes_nothing(service: Service) -> None:
    await service.link("AB")
    await service.client.post("/v1/links/AB/windows", json={"begin": at(5), "end": at(6)})
    await put(service, [*TRIANGLE, link("XY", available=[{"from": at(0), "bps": 5}])])
    read = await service.client.get("/v1/topology")
    before = await everything(service)
    for document in (read.json(), {"links": read.json()["links"], "on_broken": "replan"}):
        answer = await service.client.put("/v1/topology", json=document, headers={"If-Match": read.headers["etag"]})
        done = checked(answer)
        assert (done["created"], done["changed"], done["deleted"], done["unchanged"]) == ([], [], [], 4)
        assert answer.headers["etag"] == read.headers["etag"] and done["revision"] == read.json()["revision"]
    assert await everything(service) == before


async def test_nodes_have_names_and_places(service: Service) -> None:
    places = [{"id": "A", "name": "Genève <b>", "latitude": 46.2, "longitude": 6.1}, {"id": "B", "name": "two"}]
    checked(await put(service, TRIANGLE, nodes=places))
    read = await service.client.get("/v1/topology")
    kept = [places[0], {"id": "B", "name": "two", "latitude": None, "longitude": None}]
    assert checked(read)["nodes"] == kept
    assert checked(await service.client.put("/v1/topology", json=read.json()))["revision"] == read.json()["revision"]
    checked(await put(service, TRIANGLE))
    assert checked(await service.client.get("/v1/topology"))["nodes"] == kept, "who says nothing of nodes changes none"
    checked(await put(service, [], nodes=[{"id": "C"}], prune=False, params={"preview": True}))
    changed = checked(await put(service, [], nodes=[{"id": "B", "name": "three"}], prune=False))
    assert changed["revision"] > read.json()["revision"]
    assert [node["name"] for node in checked(await service.client.get("/v1/topology"))["nodes"]] == ["Genève <b>", "three"]
    checked(await put(service, TRIANGLE, nodes=[]))
    assert checked(await service.client.get("/v1/topology"))["nodes"] == []
    log = checked(await service.client.get("/v1/audit-log", params={"search": "node.changed"}))["items"]
    assert [(event["subject"], (event["after"] or {}).get("name")) for event in log] == [
        ("B", None), ("A", None), ("B", "three"), ("B", "two"), ("A", "Genève <b>")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "field"),
    [
        ({"latitude": 91, "longitude": 0}, "nodes.0.latitude"),
        ({"latitude": 1}, "nodes.0.longitude"),
        ({"longitude": "6.1"}, "nodes.0.longitude"),
        ({"name": "a\u0000"}, "nodes.0.name"),
        ({"height": 1}, "nodes.0.height"),
    ],
)
async def test_mistakes_in_nodes_are_named(service: Service, node: dict[str, Any], field: str) -> None:
    problem(await put(service, TRIANGLE, nodes=[{"id": "A", **node}]), 422, "invalid", field)


async def test_another_revision_than_was_read_is_refused(service: Service) -> None:
    await put(service, TRIANGLE)
    read = (await service.client.get("/v1/topology")).json()
    await service.link("BD", "B", "D")
    said = problem(await put(service, TRIANGLE, headers={"If-Match": f'"{read["revision"]}"'}), 412, "precondition-failed")
    assert said["revision"] == read["revision"] + 1
    problem(await put(service, TRIANGLE, revision=read["revision"]), 412, "precondition-failed")
    checked(await put(service, TRIANGLE, revision=said["revision"]))


async def test_nics_and_windows_stay(service: Service) -> None:
    await put(service, TRIANGLE)
    await service.enrol("h1", "A")
    window = {"begin": at(5), "end": at(6), "bps": 7}
    checked(await service.client.post("/v1/links/AB/windows", json=window), 201)
    done = checked(await put(service, [link("AB", 5 * 10**8)]))
    assert (done["changed"], done["deleted"], done["cut_off"]) == (["AB"], ["AC", "CB"], [])
    links = {item["id"]: item for item in checked(await service.client.get("/v1/links"))}
    assert set(links) == {"AB", "h1~up", "h1~down"}
    assert [w["bps"] for w in links["AB"]["windows"]] == [7]
    assert checked(await put(service, [link("XY")]))["cut_off"] == ["h1"]
    said = problem(await put(service, [link("XY"), link("AB") | {"id": "h1~up"}]), 422, "invalid")
    assert [error["field"] for error in said["errors"]] == ["links.1.id"] and "h1" in said["detail"]


async def test_mistakes_are_named_by_link_and_field(service: Service) -> None:
    before = await everything(service)
    wrong = [
        link("AB"),
        link("AC") | {"target": "A"},
        link("AB"),
        link("AD", 5, available=[{"from": at(1), "bps": 6}, {"from": at(1), "bps": 5}]),
    ]
    said = problem(await put(service, wrong), 422, "invalid")
    fields = [error["field"] for error in said["errors"]]
    assert fields == ["links.1.target", "links.2.id", "links.3.available.0.bps", "links.3.available.1.from"]
    for number, (name, value) in enumerate(
        [("capacity_bps", -1), ("capacity_bps", None), ("slot_us", 0), ("mtu_bytes", 1), ("id", "")]
    ):
        bad = [*TRIANGLE, link("XY") | {name: value}]
        said = problem(await put(service, bad), 422, "invalid")
        assert said["errors"][0]["field"] == f"links.3.{name}", number
    said = problem(await put(service, [link("AB") | {"colour": "red"}]), 422, "invalid")
    assert said["errors"][0]["field"] == "links.0.colour"
    problem(
        await put(service, [{"id": f"L{n}", "source": "A", "target": "B", "capacity_bps": 1} for n in range(10_001)]),
        422,
        "invalid",
    )
    documents: tuple[Any, ...] = (
        {},
        {"links": {}},
        {"links": [], "prune": "no"},
        {"links": [], "on_broken": "maybe"},
        [],
        {"links": [7]},
    )
    for document in documents:
        problem(await service.client.put("/v1/topology", json=document), 422, "invalid")
    assert await everything(service) == before


async def test_links_under_bookings_keep_the_document_out_or_are_replanned(service: Service, clock: Clock) -> None:
    await put(service, TRIANGLE)
    moved = await service.book(125_000_000, not_before=at(10), label="moved")
    lost = await service.book(125_000_000, source="A", destination="C", not_before=at(20), label="lost")
    stays = await service.book(125_000_000, source="C", destination="B", not_before=at(30))
    before = await everything(service)
    said = problem(await put(service, [link("CB")]), 409, "breaks-promises")
    assert [item["label"] for item in said["broken"]] == ["moved", "lost"] and said["broken_total"] == 2

    wanted = [link("AD"), link("DB", 5 * 10**8), link("CB")]
    foreseen = checked(await put(service, wanted, {"preview": "true"}))
    assert await everything(service) == before
    done = checked(await put(service, wanted, on_broken="replan"))
    assert foreseen.pop("preview") and not done.pop("preview")
    assert foreseen == done
    assert (done["created"], done["deleted"], done["unchanged"]) == (["AD", "DB"], ["AB", "AC"], 1)
    assert done["replanned"] == done["broken"] == [moved["id"], lost["id"]]
    # Over the links that came with the same document, but at half the rate.
    assert [(o["limited_by"], o["finish"]) for o in done["outcomes"]] == [("AB", at(12)), ("AC", None)]
    now = {item["id"]: item for item in checked(await service.client.get("/v1/transfers"))["items"]}
    assert now[moved["id"]]["plan"]["segments"][0]["path"] == ["AD", "DB"]
    assert now[moved["id"]]["waiting_reason"] == done["outcomes"][0]["reason"]
    assert now[moved["id"]]["waiting_reason"]["detail"].startswith("link AB was deleted")
    assert (now[lost["id"]]["state"], now[lost["id"]]["waiting_reason"]["code"]) == ("FAILED", "capacity_lost")
    assert now[stays["id"]]["plan"] == stays["plan"]
    await service.audit()
    # What comes back has its old ledger, and nothing booked.
    back = checked(await put(service, TRIANGLE, on_broken="replan"))
    assert (back["created"], back["deleted"], back["broken"]) == (["AB", "AC"], ["AD", "DB"], [])
    assert back["replanned"] == [moved["id"]]
    await service.audit()
    assert checked(await service.client.get("/v1/links/AB"))["version"] > 2


async def test_a_link_that_leads_elsewhere_is_another_link(service: Service) -> None:
    await put(service, TRIANGLE)
    transfer = await service.book(125_000_000, not_before=at(10))
    turned = [link("AB") | {"target": "D"}, link("AC"), link("CB")]
    problem(await put(service, turned), 409, "breaks-promises")
    done = checked(await put(service, turned, on_broken="replan"))
    assert (done["changed"], done["replanned"], done["broken"]) == (["AB"], [transfer["id"]], [])
    shown = checked(await service.client.get(f"/v1/transfers/{transfer['id']}"))
    assert shown["plan"]["segments"][0]["path"] == ["AC", "CB"] and shown["waiting_reason"]["code"] == "scheduled"
    await service.audit()


@pytest.mark.parametrize("how", ["patch", "window", "delete", "unwindow"])
async def test_a_preview_shows_what_would_become_of_each(how: str, service: Service, clock: Clock) -> None:
    await put(service, TRIANGLE)
    window = {"begin": at(0), "end": at(15)}
    held = checked(await service.client.post("/v1/links/CB/windows", json={"begin": at(0), "end": at(60), "bps": 10**8}), 201)
    kept = await service.book(100_000_000, not_before=at(100), deadline=at(110), priority=3)
    late = await service.book(125_000_000, not_before=at(10), deadline=at(11.5), priority=2)
    before = await everything(service)

    async def do(**more: Any) -> Any:
        if how == "patch":
            return await service.client.patch("/v1/links/AB", json={"capacity_bps": 0, "on_broken": "replan"}, params=more)
        if how == "window":
            return await service.client.post("/v1/links/AB/windows", json=window | {"on_broken": "replan"}, params=more)
        if how == "delete":
            return await service.client.delete("/v1/links/AB", params={"on_broken": "replan"} | more)
        return await service.client.delete(f"/v1/links/CB/windows/{held['window']}", params=more)

    answer = await do(preview="true")
    foreseen = checked(answer)
    assert foreseen["preview"] is True and await everything(service) == before
    done = checked(await do(), 201 if how == "window" else 200)
    assert [done[name] for name in ("replanned", "broken", "outcomes")] == [
        foreseen[name] for name in ("replanned", "broken", "outcomes")
    ]
    if how == "delete":
        assert (foreseen["deleted"], done["deleted"]) == (False, True)
    else:
        assert {name for name in done if done[name] != foreseen.get(name)} <= {"preview", "window", "windows"}
    if how != "unwindow":
        assert late["id"] in done["broken"] and kept["id"] not in done["broken"]
        outcome = next(o for o in done["outcomes"] if o["id"] == late["id"])
        assert outcome["promised_finish"] == outcome["finish_before"] == late["plan"]["finish"]
        assert parse_time(outcome["finish"]) > parse_time(at(11.5)) and outcome["reason"]["code"] == "promise_broken"
    for name in ("refuse", "replan"):  # a preview says what replanning would do, whatever else is asked
        problem(
            await service.client.patch("/v1/links/none", json={"on_broken": name}, params={"preview": "true"}), 404, "not-found"
        )
    await service.audit()


@pytest.mark.real_time
async def test_a_large_network_comes_and_goes_at_once(service: Service) -> None:
    links = json.loads(ESNET.read_text())["links"]
    took = []
    for document in (links, links, [item | {"metric": 7} for item in links], links[:100], links):
        begin = time.perf_counter()
        done = checked(await put(service, document))
        took.append(round(time.perf_counter() - begin, 2))
        assert len(done["created"]) + len(done["changed"]) + done["unchanged"] == len(document)
    print(f"{len(links)} links: created, unchanged, changed, pruned, back in {took} s")
    assert sorted(took)[2] < 1


async def test_ten_thousand_links(service: Service) -> None:
    dice = random.Random(1)
    links = [
        {"id": f"L{n}", "source": f"n{dice.randrange(500)}", "target": f"m{dice.randrange(500)}", "capacity_bps": 10**9}
        for n in range(10_000)
    ]
    begin = time.perf_counter()
    assert len(checked(await put(service, links))["created"]) == 10_000
    assert checked(await put(service, links[1:]))["deleted"] == ["L0"]
    assert len(checked(await put(service, []))["deleted"]) == 9_999
    print(f"10,000 links created, pruned, deleted in {time.perf_counter() - begin:.1f} s")
