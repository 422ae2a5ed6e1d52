# SPDX-License-Identifier: Apache-2.0
"""`bwb link import`: whole networks, from files and by name, into a real service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.cli.link import topologies
from broker.core.network import Network
from tests.cli.command import Bwb
from tests.live import Live, live_server
from tests.postgres import Server as Postgres

ESNET = Path(__file__).parents[1] / "data" / "esnet-network.json"
ONE: dict[str, Any] = {"id": "ab", "source": "A", "target": "B", "capacity_bps": 10**9}
TWO = {"id": "ba", "source": "B", "target": "A", "capacity_bps": 10**9, "mtu_bytes": 9000, "channel_bps": 10**6, "slot_us": 1000,
       "metric": 7, "available": [{"from": "2030-01-01T00:00:00Z", "bps": 5 * 10**8}]}  # fmt: skip


@pytest.fixture(scope="module")
def live(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A broker of their own: these tests change the whole network."""
    url = postgres.new_database()
    with live_server(url, tmp_path_factory.mktemp("state")) as (running, _):
        yield running
    postgres.drop(url)


@pytest.fixture
def nothing(bwb: Bwb) -> None:
    """No links, whatever the test before this one left."""
    bwb("link", "import", "-", "--prune", "--replan", stdin='{"links": []}')


def saved(tmp_path: Path, *links: dict[str, Any], **more: Any) -> str:
    file = tmp_path / "NET.json"
    file.write_text(json.dumps({"links": links, **more}))
    return str(file)


def shown(bwb: Bwb) -> dict[str, Any]:
    return {item["id"]: item for item in bwb("link", "list", "--json").json}


@pytest.mark.usefixtures("nothing")
def test_a_real_research_network_end_to_end(bwb: Bwb) -> None:
    preview = bwb("link", "import", str(ESNET), "--dry-run", "--json").json
    assert (len(preview["created"]), preview["changed"], preview["deleted"]) == (504, [], [])
    assert shown(bwb) == {}, "a dry run changes nothing"
    ran = bwb("link", "import", str(ESNET))
    assert "links: 504 created, 0 changed, 0 deleted; 0 unchanged" in ran.out
    assert "+ ... and 484 more" in ran.out
    there = shown(bwb)
    document = json.loads(ESNET.read_text())
    for link in document["links"]:
        assert {name: there[link["id"]][name] for name in link} == link
        assert there[there[link["id"]]["reverse"]]["reverse"] == link["id"]
    again = bwb("link", "import", str(ESNET), "--json").json
    assert (again["created"], again["changed"], again["deleted"], again["unchanged"]) == ([], [], [], 504)
    ends = document["links"][0]["source"], document["links"][-1]["target"]
    assert bwb("transfer", "submit", *ends, "--size", "1TB", "--json").json["state"] == "RESERVED"
    assert bwb("audit", "--json").json["clean"]


@pytest.mark.usefixtures("nothing")
def test_it_adds_and_changes_and_with_prune_deletes(bwb: Bwb, tmp_path: Path) -> None:
    bwb("link", "import", saved(tmp_path, ONE, TWO))
    there = shown(bwb)
    assert {name: there["ba"][name] for name in TWO} == TWO
    faster = ONE | {"capacity_bps": 2 * 10**9}
    ran = bwb("link", "import", saved(tmp_path, faster))
    assert "~ ab\nlinks: 0 created, 1 changed, 0 deleted; 1 unchanged" in ran.out
    assert set(shown(bwb)) == {"ab", "ba"}, "other links stay"
    preview = bwb("link", "import", saved(tmp_path, faster), "--prune", "--dry-run")
    assert "- ba\nwould be: 0 created, 0 changed, 1 deleted; 1 unchanged" in preview.out
    assert set(shown(bwb)) == {"ab", "ba"}
    done = bwb("link", "import", "-", "--prune", "--json", stdin=json.dumps({"links": [faster]})).json
    assert done["deleted"] == ["ba"]
    assert set(shown(bwb)) == {"ab"}


@pytest.mark.usefixtures("nothing")
def test_promises_are_not_broken_unasked(bwb: Bwb, tmp_path: Path) -> None:
    bwb("link", "import", saved(tmp_path, ONE))
    transfer = bwb("transfer", "submit", "A", "B", "--size", "100G", "--deadline", "+15min", "--json").json["id"]
    slower = saved(tmp_path, ONE | {"capacity_bps": 10**8})
    refused = bwb("link", "import", slower, code=1)
    assert "Breaks promises (409)" in refused.err
    assert transfer in refused.err
    assert shown(bwb)["ab"]["capacity_bps"] == 10**9
    preview = bwb("link", "import", slower, "--dry-run")
    assert f"promises broken: {transfer}" in preview.out
    assert shown(bwb)["ab"]["capacity_bps"] == 10**9
    done = bwb("link", "import", slower, "--replan")
    assert f"promises broken: {transfer}" in done.out
    assert shown(bwb)["ab"]["capacity_bps"] == 10**8
    assert bwb("transfer", "show", transfer, "--json").json["waiting_reason"]["code"] == "promise_broken"


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ([ONE, {**TWO, "metric": "7"}], ["links[1].metric: must be a whole number"]),
        ([ONE, {**TWO, "id": "ab"}], ['links[1].id: "ab" is links[0] already']),
        ([{**ONE, "target": "A"}], ["links[0].target: source and target are both 'A'"]),
        ([{**ONE, "mtu_bytes": 1}, {**TWO, "slot_us": 0}], ["links[0].mtu_bytes", "links[1].slot_us"]),
        ([{**TWO, "available": [{"from": "2030-01-01T00:00:00", "bps": 1}]}], ["links[0].available[0].from", "give a zone"]),
        ([{"id": "ab"}], ["links[0].source: is missing", "links[0].capacity_bps: is missing"]),
    ],
)
def test_mistakes_name_file_and_field(bwb: Bwb, tmp_path: Path, links: list[Any], words: list[str]) -> None:
    file = saved(tmp_path, *links)
    ran = bwb("link", "import", file, code=2)
    assert file in ran.err
    assert all(word in ran.err for word in words), ran.err


@pytest.mark.usefixtures("nothing")
def test_what_only_the_broker_refuses_is_said_of_the_file_too(bwb: Bwb, tmp_path: Path) -> None:
    file = saved(tmp_path, ONE, {**TWO, "source": "Berlin Mitte"})
    ran = bwb("link", "import", file, code=1)
    assert f"{file}: links[1].source: " in ran.err
    refused = bwb("link", "import", file, "--json", code=1).json
    assert refused["errors"][0]["field"] == "links.1.source"
    assert shown(bwb) == {}


def test_unknown_fields_are_named(bwb: Bwb, tmp_path: Path) -> None:
    assert "ignored: colour" in bwb("link", "import", saved(tmp_path, ONE | {"colour": "red"}, comment="mine")).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--list"),
        (("no-such.json",), "no-such.json: cannot be read: No such file"),
        (("sndlib/germny50",), "did you mean sndlib/germany50"),
        (("../sndlib/polska", "--capacity", "1G"), "is no file"),
        (("sndlib/germany50",), "--capacity 100G"),
        (("sndlib/germany50", "--capacity", "1G", "--mtu", "1"), "--mtu: 1 is not in"),
        ((str(ESNET), "--capacity", "1G"), "--capacity is for networks of topohub"),
    ],
)
def test_what_cannot_be_understood(bwb: Bwb, words: tuple[str, ...], said: str) -> None:
    assert said in bwb("link", "import", *words, code=2).err


@pytest.mark.usefixtures("nothing")
def test_topohub_by_name(bwb: Bwb) -> None:
    words = ("sndlib/germany50", "--capacity", "100G", "--mtu", "9000")
    assert len(bwb("link", "import", *words, "--json").json["created"]) == 176
    there = shown(bwb)
    link = there["Aachen--Koeln"] if "Aachen--Koeln" in there else next(iter(there.values()))
    back = there[link["reverse"]]
    assert (back["source"], back["target"], back["metric"]) == (link["target"], link["source"], link["metric"])
    assert {item["capacity_bps"] for item in there.values()} == {10**11}
    assert {item["mtu_bytes"] for item in there.values()} == {9000}
    assert len({item["metric"] for item in there.values()}) > 20, "distances"
    changed = bwb("link", "import", *words, "--metric", "1", "--json").json
    assert changed["unchanged"] + len(changed["changed"]) == 176
    assert {item["metric"] for item in shown(bwb).values()} == {1}


def test_names_are_listed(bwb: Bwb) -> None:
    assert "sndlib/germany50" in bwb("link", "import", "--list").out.splitlines()
    assert bwb("link", "import", "--list", "GERMANY", "--json").json == ["sndlib/germany50", "sndlib/nobel-germany"]
    assert "no network" in bwb("link", "import", "--list", "atlantis", code=1).err


@pytest.mark.parametrize("group", ["backbone", "caida", "gabriel/25", "sndlib", "topozoo"])
def test_every_network_of_topohub_makes_links_that_the_broker_takes(group: str) -> None:
    from broker.api.schemas import LinkBody
    from broker.core.link_document import document_of

    chosen = topologies.names(f"{group}/")
    for name in chosen[:: max(len(chosen) // 12, 1)]:
        made = topologies.links(name, topologies.Equal(10**9))
        network = Network(made)
        assert made
        for link in made:
            assert not list(link.problems())
            LinkBody.model_validate(document_of(link))
            back = network.reverse(link.id)
            assert back is not None
            assert network.links[back].metric == link.metric
