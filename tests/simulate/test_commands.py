# SPDX-License-Identifier: Apache-2.0
"""`bwb simulate`: the stable output, files in and out, and everything that can be written wrongly."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.command import bwb

PNG = b"\x89PNG\r\n\x1a\n"


# --- vbls-paper -------------------------------------------------------------------------------------------------------------------


def test_the_stable_form() -> None:
    answer = bwb("vbls-paper", "--loads", "0.5,0.9", "--requests", "2000", "--seeds", "1,2", "--json")
    assert answer.status == 0
    results = answer.document["results"]
    assert len(results) == 2 * 3 * 3
    for result in results:
        assert list(result) == ["load", "scheme", "rmax_channels", "normalized_delay_s", "ci95_s"]
        assert result["load"] in (0.5, 0.9)
        assert result["scheme"] in ("vbls", "fbls", "ps")
        assert result["rmax_channels"] in (1, 5, 10)
        assert result["normalized_delay_s"] > 0
        assert result["ci95_s"] > 0
    assert len({(r["load"], r["scheme"], r["rmax_channels"]) for r in results}) == len(results)


def test_any_number_of_processes_gives_the_same(tmp_path: Path) -> None:
    words = ("vbls-paper", "--loads", "0.3,0.95", "--requests", "500", "--seeds", "4,2,9", "--json")
    alone, together = bwb(*words, "--csv", tmp_path / "1.csv"), bwb(*words, "--csv", tmp_path / "2.csv", "--jobs", "2")
    assert alone.out == together.out
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def test_one_seed_has_no_interval_and_few_files_may_miss_a_class() -> None:
    results = bwb("vbls-paper", "--loads", "0.5", "--requests", "1", "--seeds", "0", "--json").document["results"]
    assert all(result["ci95_s"] is None for result in results)
    assert sum(result["normalized_delay_s"] is None for result in results) == 6
    table = bwb("vbls-paper", "--loads", "0.5", "--requests", "1", "--seeds", "0")
    assert table.status == 0
    assert "one seed" in table.out


def test_table_csv_and_picture_of_the_paper(tmp_path: Path) -> None:
    answer = bwb("vbls-paper", "--loads", "0.9", "--requests", "300", "--csv", tmp_path / "a.csv", "--png", tmp_path / "a.png")
    assert answer.status == 0
    assert "VBLS / PS" in answer.out
    assert "5 seeds" in answer.out
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert float(rows[0]["normalized_delay_s"]) > 0
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--loads", "0.5,x"), "--loads: 'x' is no number"),
        (("--loads", "0.5,,1"), "--loads: '0.5,,1' has an empty entry"),
        (("--loads", "0"), "--loads: 0 is not in 0.001..10"),
        (("--loads", "nan"), "--loads: nan is not in"),
        (("--loads", "0.5,0.50"), "--loads: 0.5 is there twice"),
        (("--loads", ",".join(str(i) for i in range(1, 200))), "--loads: at most 100"),
        (("--seeds", "1,-2"), "--seeds: '-2' is no whole number"),
        (("--seeds", "1,1"), "--seeds: 1 is there twice"),
        (("--requests", "0"), "--requests: 0 is not in 1..1000000"),
        (("--jobs", "0"), "--jobs: 0 is not in 1..256"),
        (("--csv", "/nowhere/x.csv"), "--csv: there is no folder /nowhere"),
        (("--png", "/"), "--png: / is a folder"),
    ],
)
def test_what_the_paper_cannot_take(words: tuple[str, ...], says: str) -> None:
    answer = bwb("vbls-paper", *words)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err


# --- run --------------------------------------------------------------------------------------------------------------------------

LINK = ("run", "--link", "10M", "--load", "0.8", "--size-min", "10k", "--size-max", "1M", "--requests", "40")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "NET.json"
    ends = [("A", "B"), ("B", "A"), ("B", "C"), ("C", "B")]
    links = [{"id": a + b, "source": a, "target": b, "capacity_bps": 10_000_000} for a, b in ends]
    path.write_text(json.dumps({"links": links}))
    return path


def timeless(document: Mapping[str, Any]) -> Any:
    return {**document, "planners": [{name: each[name] for name in each if name != "planning"} for each in document["planners"]]}


def test_one_link_as_table_json_csv_and_picture(tmp_path: Path) -> None:
    words = (*LINK, "--planners", "vbls,fbls,ps", "--rate-max", "1M:0.5,10M:0.5")
    table = bwb(*words)
    assert table.status == 0
    assert "Admitted" in table.out
    assert "Normalized delay in s by Rmax" in table.out
    answer = bwb(*words, "--json", "--csv", tmp_path / "r.csv", "--png", tmp_path / "r.png")
    assert answer.status == 0
    assert [each["planner"] for each in answer.document["planners"]] == ["vbls", "fbls", "ps"]
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["planner"], row["rate_max_bps"]) for row in rows] == [
        (planner, rate) for planner in ("vbls", "fbls", "ps") for rate in ("all", "1000000", "10000000")
    ]
    for each, row in zip(answer.document["planners"], rows[::3], strict=True):
        assert float(row["normalized_delay_s"]) == each["normalized_delay_s"]
        assert int(row["deadlines_missed"]) == each["deadlines"]["missed"]
    assert (tmp_path / "r.png").read_bytes().startswith(PNG)
    assert timeless(bwb(*words, "--json").document) == timeless(answer.document)


def test_options_go_before_the_file(network: Path, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"load": 0.5, "requests": 9, "seed": 3, "sizes": {"distribution": "fixed", "mean_bytes": 1000}}))
    answer = bwb("run", "--network", network, "--spec", spec, "--seed", "4", "--size-mean", "2000", "--json")
    assert answer.status == 0
    found = answer.document["specification"]
    assert (found["seed"], found["requests"], found["sizes"]) == (4, 9, {"distribution": "fixed", "mean_bytes": 2000})


def test_traces(network: Path, tmp_path: Path) -> None:
    """The same requests as CSV, as JSON, and as REQ.json of `bwb plan`."""
    entries = [
        {"arrival_s": 0, "volume_bytes": 100_000, "source": "A", "destination": "C", "deadline_s": 1.5},
        {"arrival_s": 2.5, "volume_bytes": 50_000, "source": "C", "destination": "B", "rate_max_bps": 2_000_000},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"trace": entries}))
    (tmp_path / "t.csv").write_text(
        "arrival_s,volume_bytes,source,destination,rate_max_bps,deadline_s\n0,100000,A,C,,1.5\n2.5,50000,C,B,2000000,\n"
    )
    begin = "2026-01-01T00:00:0"
    requests = [
        {
            "id": "1",
            "source": "A",
            "destination": "C",
            "volume_bytes": 100_000,
            "not_before": begin + "0Z",
            "deadline": begin + "1.5Z",
        },
        {
            "id": "2",
            "source": "C",
            "destination": "B",
            "volume_bytes": 50_000,
            "not_before": begin + "2.5Z",
            "rate_max_bps": 2_000_000,
        },
    ]
    (tmp_path / "req.json").write_text(json.dumps({"requests": requests}))
    found = []
    for name in ("t.json", "t.csv", "req.json"):
        answer = bwb("run", "--network", network, "--trace", tmp_path / name, "--json")
        assert answer.status == 0, answer.err
        found.append(timeless(answer.document))
    assert found[0] == found[1] == found[2]
    # Alone each: 100 kB at 10 Mb/s take 0.08 s, 50 kB at 2 Mb/s 0.2 s.
    assert found[0]["planners"][0]["normalized_delay_s"] == pytest.approx((100 * 0.08 + 50 * 0.2) / 150)
    assert found[0]["planners"][0]["deadlines"] == {"requests": 1, "met": 1, "missed": 0, "late": 0}


def test_a_matrix(network: Path, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("source,destination,weight\nA,B,3\nC,B,1\n")
    (tmp_path / "m.json").write_text(
        json.dumps([{"source": "A", "destination": "B", "weight": 3}, {"source": "C", "destination": "B"}])
    )
    rest = ("run", "--network", network, "--load", "0.5", "--requests", "50", "--sizes", "fixed", "--size-mean", "10k", "--json")
    by_csv, by_json = (timeless(bwb(*rest, "--matrix", tmp_path / name).document) for name in ("m.csv", "m.json"))
    assert by_csv == by_json
    assert [each["link"] for each in by_csv["planners"][0]["links"]] == ["AB", "CB"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--planners", "vbls,best"), "--planners: [1]: 'best' is unknown; there are: "),
        (("--load", "0"), "--load: 0 is not in"),
        (("--arrivals-per-s", "5"), "--arrivals-per-s: follows from load"),
        (("--requests", "300000"), "--requests: 300000 is not in 1..200000"),
        (("--sizes", "normal"), "--sizes: 'normal' is unknown; there are: exponential, fixed, pareto"),
        (("--sizes", "fixed", "--size-mean", "0"), "--size-mean: 0 is not in"),
        (("--shape", "-1"), "--shape: -1 is not in"),
        (("--size-min", "2M"), "--size-max: 1000000 is below least_bytes"),
        (("--rate-max", "fast"), "--rate-max: 'fast' is no rate"),
        (("--rate-max", "1M:x"), "--rate-max: "),
        (("--rate-max", "1M:-1"), "--rate-max: [0].weight: -1 is not in"),
        (("--deadline-factor", "2:x"), "--deadline-factor: '2:x': write 2:4"),
        (("--deadline-factor", "4:2"), "--deadline-factor: 2 is below"),
        (("--deadline-share", "2"), "--deadline-share: 2 is not in 0..1"),
        (("--lead", "1:2"), "--lead: '1' is no duration"),
        (("--nodes", "A,Q"), "--nodes: [1]: no link of the network touches 'Q'"),
        (("--nodes", "A"), "--nodes: name at least two"),
        (("--begin", "now"), "--begin: 'now': not an RFC 3339 time"),
        (("--network", "x.json"), "--link: give --network or --link, not both"),
        (("--trace", "/nowhere.csv"), "/nowhere.csv: cannot be read"),
        (("--spec", "/nowhere.json"), "/nowhere.json: cannot be read"),
        (("--png", "/nowhere/x.png"), "--png: there is no folder /nowhere"),
    ],
)
def test_what_a_run_cannot_take(words: tuple[str, ...], says: str) -> None:
    answer = bwb(*LINK, *words)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err


def test_no_network_at_all() -> None:
    answer = bwb("run", "--load", "0.5")
    assert (answer.status, answer.out) == (2, "")
    assert "--network: is missing" in answer.err
    assert "--load: is missing" in bwb("run", "--link", "10M").err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", "arrival_s\n1\n", "column 'volume_bytes' is missing"),
        ("t.csv", "arrival_s,volume_bytes,size\n1,2,3\n", "column 'size' is unknown"),
        ("t.csv", "arrival_s,volume_bytes\n1,many\n", "line 2: volume_bytes: 'many' is no number"),
        ("t.csv", "arrival_s,volume_bytes\n1\n", "line 2: has fewer cells"),
        ("t.csv", "arrival_s,volume_bytes\n1,2,3\n", "line 2: has more cells"),
        ("t.csv", "arrival_s,volume_bytes\n", "no rows"),
        ("t.csv", "", "column 'arrival_s' is missing"),
        ("t.csv", "arrival_s,volume_bytes\n-1,5\n", "--trace: [0].arrival_s: -1 is not in"),
        ("t.csv", "arrival_s,volume_bytes\nnan,5\n", "--trace: [0].arrival_s: must be a number"),
        ("t.json", "[1]", "--trace: [0]: must be an object"),
        ("t.json", "{", "is not JSON"),
        ("t.json", '{"trace": 3}', "must be a list"),
        ("t.json", "[" * 100_000, "is not JSON"),
        ("t.json", '{"requests": []}', "has no requests"),
        ("t.json", b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_bad_traces(tmp_path: Path, name: str, content: str | bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    answer = bwb("run", "--link", "10M", "--trace", path)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err


def test_mistakes_of_a_file_name_the_file(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"load": -1, "sizes": {"shape": 0}, "plannrs": []}))
    answer = bwb("run", "--link", "10M", "--spec", spec, "--seed", "-1")
    assert answer.status == 2
    assert f"--spec: {spec}: load: -1 is not in" in answer.err
    assert f"--spec: {spec}: sizes.shape: 0 is not in" in answer.err
    assert f"--spec: {spec}: plannrs: is unknown" in answer.err
    assert "--seed: -1 is not in" in answer.err
    spec.write_text("[]")
    assert "must be a JSON object" in bwb("run", "--link", "10M", "--spec", spec).err


@pytest.mark.real_time
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_it_without_a_traceback(jobs: str) -> None:
    """To all processes of the group, as a terminal does it."""
    words = ("vbls-paper", "--requests", "200000", "--jobs", jobs, "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "broker.cli.app", "simulate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        time.sleep(3)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
