# SPDX-License-Identifier: Apache-2.0
"""`bwb plan`: the shared vectors, the documentation's examples, and everything that can be wrong with a file."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from broker.cli import patience
from broker.cli.network_file import BadFile, read_network, read_requests
from broker.cli.patience import Work
from broker.cli.plan.commands import plan_command
from broker.cli.plan.show import picture
from broker.core.plan import Plan
from broker.core.segments import Segment
from broker.planners import PLANNERS
from broker.planners.vbls import Vbls

ROOT = Path(__file__).parents[2]
VECTORS = sorted((ROOT / "api-spec/vectors/plan").glob("*.json"))
EXAMPLES = ROOT / "docs/examples"
ESNET = ROOT / "tests/data/esnet-network.json"

app = typer.Typer()
app.command("plan")(plan_command)


@app.command("other")
def other() -> None:
    """With a second command, `plan` is a word of the command line, as in `bwb`."""


class Answer:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


def bwb(*words: str | Path, columns: int = 110) -> Answer:
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


LINK = {"id": "L1", "source": "A", "target": "B", "capacity_bps": 8_000_000}
REQUEST = {"id": "r1", "source": "A", "destination": "B", "volume_bytes": 1_000_000, "not_before": "2026-01-01T00:00:00Z"}


SOON = "2026-01-01T00:01:00Z"
NO_OFFER = dict.fromkeys(
    ("earliest_finish", "largest_volume_bytes", "smallest_rate_max_bps", "largest_rate_min_bps", "longest_duration_s")
)


class Files:
    """NET.json and REQ.json with one link and one request, unless told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.network, self.requests = folder / "NET.json", folder / "REQ.json"
        self.links(LINK)
        self.ask(REQUEST)

    def links(self, *links: object, **more: object) -> None:
        self.network.write_text(json.dumps({"links": links} | more))

    def ask(self, *requests: object, **more: object) -> None:
        self.requests.write_text(json.dumps({"requests": requests} | more))

    def plan(self, *words: str, planner: str = "vbls") -> Answer:
        return bwb("plan", "--network", self.network, "--requests", self.requests, "--planner", planner, *words)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# --- what it answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_shared_vectors(files: Files, path: Path) -> None:
    vector = json.loads(path.read_text())
    files.network.write_text(json.dumps(vector["network"]))
    files.requests.write_text(json.dumps(vector["requests"]))
    answer = files.plan("--json", planner=vector["planner"])
    assert (answer.status, answer.err) == (0, "")
    assert answer.document == vector["answer"]


def test_the_worked_example_of_the_paper() -> None:
    """{(50,60,1), (60,70,2), (70,75,2)}: channels of 10 Gb/s, units of 100 ms (Veeraraghavan et al. 2004, section 3.2)."""
    vector = json.loads((ROOT / "api-spec/vectors/plan/vbls-worked-example.json").read_text())
    (request,) = vector["requests"]["requests"]
    assert (request["volume_bytes"], request["rate_max_bps"]) == (5 * 10**9, 2 * 10**10)
    (transfer,) = vector["answer"]["transfers"]

    def units(text: str) -> float:
        matched = re.fullmatch(r"2026-01-01T00:00:(\d\d(?:\.\d+)?)Z", text)
        assert matched
        return float(matched[1]) * 10

    rows = [(units(row["begin"]), units(row["end"]), row["rate_bps"] / 10**10) for row in transfer["segments"]]
    assert rows == [(50, 60, 1), (60, 70, 2), (70, 75, 2)]


def test_the_answer_whole(files: Files) -> None:
    files.ask(REQUEST, {**REQUEST, "id": "r2", "deadline": "2026-01-01T00:00:01.5Z"})
    answer = files.plan("--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.document == {
        "planner": "vbls",
        "transfers": [
            {
                "id": "r1",
                "admitted": True,
                "start": "2026-01-01T00:00:00Z",
                "finish": "2026-01-01T00:00:01Z",
                "segments": [
                    {"begin": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01Z", "rate_bps": 8_000_000, "path": ["L1"]}
                ],
                "reason": None,
                "counter_offer": None,
            },
            {
                "id": "r2",
                "admitted": False,
                "start": None,
                "finish": None,
                "segments": [],
                "reason": "infeasible: 1000000 bytes do not fit between 2026-01-01T00:00:00Z "
                "and the deadline 2026-01-01T00:00:01.500000Z",
                "counter_offer": NO_OFFER | {"earliest_finish": "2026-01-01T00:00:02Z", "largest_volume_bytes": 500_000},
            },
        ],
        "metrics": {"admitted": 1, "congestion_factor": 1.0, "makespan_s": 1.0},
    }


HOLDING = {"vbls", "fbls", "alap", "optimal"}  # these take holding times (class 2)


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_holding_time_is_held_or_refused(files: Files, planner: str) -> None:
    hold = {key: value for key, value in REQUEST.items() if key != "volume_bytes"}
    hold |= {"id": "hold", "duration_s": 0.5, "rate_max_bps": 5_000_000, "rate_min_bps": 1_000_000, "deadline": SOON}
    files.ask(hold, {**REQUEST, "deadline": SOON})
    answer = files.plan("--json", planner=planner)
    assert answer.status == 0
    held, other = answer.document["transfers"]
    assert other["admitted"]
    if planner in HOLDING:
        assert (held["admitted"], held["reason"]) == (True, None)
        duration = datetime.fromisoformat(held["segments"][-1]["end"]) - datetime.fromisoformat(held["segments"][0]["begin"])
        assert duration.total_seconds() == 0.5
        assert all(1_000_000 <= row["rate_bps"] <= 5_000_000 for row in held["segments"])
    else:
        assert held["reason"].startswith("unsupported: ")


def test_nothing_to_plan_is_a_plan(files: Files) -> None:
    files.links()
    files.ask()
    answer = files.plan("--json")
    assert answer.document["metrics"] == {"admitted": 0, "congestion_factor": 0.0, "makespan_s": 0.0}
    assert files.plan().status == 0
    everyone = files.plan("--compare", "--json", planner=",".join(PLANNERS))
    assert everyone.status == 0
    assert [figures["admitted"] for figures in everyone.document["comparison"]] == [0] * len(PLANNERS)
    assert files.plan("--compare", planner=",".join(PLANNERS)).status == 0


def test_every_pair_of_a_real_network(files: Files) -> None:
    """80 routers of ESnet: what two connected nodes ask for is admitted, and twice the same answer comes out."""
    nodes = sorted({link["source"] for link in json.loads(ESNET.read_text())["links"]})
    files.ask(
        *(
            {**REQUEST, "id": f"{a}>{b}", "source": a, "destination": b, "volume_bytes": 10**12}
            for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True)
        )
    )
    first, second = (bwb("plan", "--network", ESNET, "--requests", files.requests, "--json") for _ in range(2))
    assert (first.status, first.err) == (0, ""), "the file's comment is no unknown field"
    assert first.out == second.out
    assert first.document["metrics"]["admitted"] == len(nodes) == 80
    assert 0 < first.document["metrics"]["congestion_factor"] <= 1


def test_optional_fields_may_be_null_and_times_may_have_offsets(files: Files) -> None:
    files.links({**LINK, "mtu_bytes": None, "channel_bps": None, "slot_us": None, "metric": None, "available": None})
    nulls = dict.fromkeys(("rate_max_bps", "rate_min_bps", "deadline", "duration_s", "priority"))
    files.ask({**REQUEST, **nulls, "not_before": "2026-01-01T02:00:00+02:00"})
    assert files.plan("--json").document["transfers"][0]["start"] == "2026-01-01T00:00:00Z"


# --- options of requests, objectives, comparisons -----------------------------------------------------------------------------------


TWO_WAYS = (LINK, {**LINK, "id": "L2", "metric": 2})
STEP = {**LINK, "available": [{"from": "2026-01-01T00:00:00.5Z", "bps": 4_000_000}]}


def segments(answer: Answer, index: int = 0) -> list[tuple[str, int]]:
    return [("/".join(row["path"]), row["rate_bps"]) for row in answer.document["transfers"][index]["segments"]]


def test_a_request_may_name_its_path_and_where_it_may_choose_from(files: Files) -> None:
    files.links(*TWO_WAYS)
    files.ask({**REQUEST, "path": ["L2"]})
    assert segments(files.plan("--json")) == [("L2", 8_000_000)]
    files.ask(REQUEST, {**REQUEST, "id": "r2"})
    assert segments(files.plan("--json"), 1) == [("L2", 8_000_000)], "the other path is free at once"
    assert segments(files.plan("--json", "--paths", "1"), 1) == [("L1", 8_000_000)]
    files.ask(REQUEST, {**REQUEST, "id": "r2", "paths": 2})
    assert segments(files.plan("--json", "--paths", "1"), 1) == [("L2", 8_000_000)], "what a request says counts"
    files.ask({**REQUEST, "path": ["L3"]})
    assert "L3" in files.plan("--json").document["transfers"][0]["reason"]


def test_a_request_may_be_split_and_the_picture_shows_the_sum(files: Files) -> None:
    files.links(*TWO_WAYS)
    files.ask({**REQUEST, "split": True})
    answer = files.plan("--json")
    assert sorted(segments(answer)) == [("L1", 8_000_000), ("L2", 8_000_000)]
    assert answer.document["transfers"][0]["finish"] == "2026-01-01T00:00:00.500000Z"
    shown = files.plan()
    assert "a full block is 16 Mb/s" in shown.out
    assert "L1, L2" in shown.out


@pytest.mark.parametrize("limit", [{"most_segments": 1}, {"shortest_segment_s": 0.6}])
def test_a_request_may_limit_how_often_it_is_reprogrammed(files: Files, limit: dict[str, object]) -> None:
    files.links(STEP)
    files.ask(REQUEST)
    assert [rate for _, rate in segments(files.plan("--json"))] == [8_000_000, 4_000_000]
    files.ask({**REQUEST, **limit})
    assert {rate for _, rate in segments(files.plan("--json"))} == {4_000_000}, "rows that touch at one rate are one"


@pytest.mark.parametrize("objective", ["congestion", "admitted", "volume", "completion"])
def test_optimal_minds_an_objective_and_says_how_far_it_is_from_the_best(files: Files, objective: str) -> None:
    soon = {**REQUEST, "deadline": "2026-01-01T00:00:02Z"}
    files.ask(soon, {**soon, "id": "r2", "volume_bytes": 500_000})
    answer = files.plan("--json", "--objective", objective, "--time-limit", "20", planner="optimal")
    metrics = answer.document["metrics"]
    values = {"congestion": 0.75, "admitted": 2, "volume": 1_500_000, "completion": 2.0}
    assert (metrics["objective"], metrics["admitted"]) == (objective, 2)
    assert metrics["value"] == pytest.approx(values[objective])
    assert metrics["bound"] == pytest.approx(values[objective], rel=0.03)
    assert metrics["gap"] == pytest.approx(abs(metrics["value"] - metrics["bound"]) / metrics["value"])
    assert set(metrics) == {"admitted", "congestion_factor", "makespan_s", "objective", "value", "bound", "gap", "solver"}
    shown = files.plan("--objective", objective, planner="optimal")
    assert f"optimal ({objective}): 2 of 2 admitted" in " ".join(shown.out.split())


def test_optimal_minds_congestion_unless_told_otherwise(files: Files) -> None:
    assert files.plan("--json", planner="optimal").document["metrics"]["objective"] == "congestion"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--objective", "volume"], "--objective is for the planner optimal; with vbls leave it out, or add --planner optimal"),
        (["--time-limit", "1"], "--time-limit is for the planner optimal"),
        (
            ["--planner", "fbls,optimal", "--objective", "fame"],
            "'fame' is unknown; there are: congestion, admitted, volume, completion",
        ),
        (["--planner", "optimal", "--time-limit", "0"], "--time-limit: 0 is not a number of seconds above 0"),
        (["--planner", "optimal", "--time-limit", "nan"], "--time-limit: nan is not a number of seconds above 0"),
        (["--planner", "vbls,"], "--planner: '' is unknown; there are: vbls, "),
        (["--planner", "vbls,nls"], "'nls' is unknown"),
        (["--paths", "0"], "--paths"),
    ],
)
def test_options_that_do_not_go_together(files: Files, words: list[str], said: str) -> None:
    answer = bwb("plan", "--network", files.network, "--requests", files.requests, *words)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err


def test_planners_are_compared_side_by_side(files: Files) -> None:
    files.ask(REQUEST, {**REQUEST, "id": "r2"}, {**REQUEST, "id": "r3", "deadline": "2026-01-01T00:00:01.5Z"})
    answer = files.plan("--json", planner="vbls, ifs ,vbls")
    assert [plan["planner"] for plan in answer.document["plans"]] == ["vbls", "ifs"]
    assert answer.document["plans"][0] == files.plan("--json").document
    assert [plan.get("books") for plan in answer.document["plans"]] == [None, False]
    assert answer.document["comparison"] == [
        {
            "planner": "vbls", "admitted": 2, "congestion_factor": 1.0, "makespan_s": 2.0, "mean_finish_s": 1.5, "segments": 2,
        },
        {
            "planner": "ifs", "admitted": 2, "congestion_factor": pytest.approx(2 / 3, rel=1e-5), "makespan_s": 3.0,
            "mean_finish_s": pytest.approx(3.0, rel=1e-5), "segments": 2,
        },
    ]  # fmt: skip
    shown = files.plan(planner="vbls,ifs").out
    assert re.search(r"vbls +2 of 3 +100.0% +2 s +1.5 s +2", shown)
    assert re.search(r"r3 +refused +refused", shown)
    assert "ifs only predicts and books nothing" in shown


@pytest.mark.parametrize("columns", [30, 80, 300])
def test_everything_is_compared_on_any_terminal(files: Files, columns: int) -> None:
    files.ask(*({**REQUEST, "id": f"r{i}", "deadline": SOON} for i in range(45)))
    words: list[str | Path] = ["plan", "--network", files.network, "--requests", files.requests, "--compare"]
    answer = bwb(*words, columns=columns)
    assert answer.status == 0
    assert all(name in answer.out for name in PLANNERS)
    assert "5 transfers more are in --json" in " ".join(answer.out.split())
    assert max(map(len, answer.out.splitlines())) <= columns


# --- what people see ------------------------------------------------------------------------------------------------------------


def console_blocks(path: Path) -> Iterator[tuple[list[str], str]]:
    """(command, output) of every ```console block."""
    for block in re.findall(r"```console\n\$ (.*?)```", path.read_text(), re.DOTALL):
        command, _, output = block.replace("\\\n", "").partition("\n")
        yield command.split(), output


def tidy(text: str) -> list[str]:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


@pytest.mark.parametrize(("command", "output"), list(console_blocks(ROOT / "docs/planning.md")))
def test_the_examples_of_the_documentation(monkeypatch: pytest.MonkeyPatch, command: list[str], output: str) -> None:
    monkeypatch.chdir(ROOT)
    assert command[0] == "bwb"
    answer = bwb(*command[1:])
    assert answer.status == 0
    assert tidy(answer.out) == tidy(output)


def test_the_table_of_planners_is_true() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (one by one|together) \| .* \| (yes|no) \|$", (ROOT / "docs/planning.md").read_text(), re.MULTILINE
    )
    assert {name for name, _, _ in rows} == set(PLANNERS)
    for name, how, holds in rows:
        assert (how == "together") == PLANNERS[name].traits.joint, name
        assert (holds == "yes") == (name in HOLDING), name


def test_help_teaches(files: Files) -> None:
    answer = bwb("plan", "--help", columns=80)
    assert answer.status == 0
    assert "Example" in answer.out
    assert "bwb plan --network NET.json --requests REQ.json" in answer.out
    for name in PLANNERS:
        assert re.search(rf"^ +{name}  +\w", answer.out, re.MULTILINE), f"--help says nothing of {name}"
    # The files that it shows are files that it takes.
    documents = re.findall(r'\{"(?:links|requests)".*?\}\]\}', answer.out, re.DOTALL)
    network, requests = (json.loads(text) for text in documents)
    files.links(*network["links"])
    files.ask(*requests["requests"])
    assert files.plan("--json").document["metrics"]["admitted"] == 1


def test_a_table_for_people(files: Files) -> None:
    files.ask(REQUEST, {**REQUEST, "id": "[red]r2", "destination": "Z"})
    answer = files.plan()
    assert (answer.status, answer.err) == (0, "")
    assert "2026-01-01T00:00:01Z" in answer.out
    assert "[red]r2: no_path: no link of the network touches 'Z'" in answer.out, "ids are not markup"
    assert "vbls: 1 of 2 admitted, busiest link 100.0%, done after 1 s; a full block is 8 Mb/s" in answer.out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_terminal_shows_it(files: Files, encoding: str) -> None:
    files.ask({**REQUEST, "id": "größe-中"})
    code = "import typer; from broker.cli.plan.commands import plan_command; typer.run(plan_command)"
    words: list[str | Path] = [sys.executable, "-c", code, "--network", files.network, "--requests", files.requests]
    run = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"2026-01-01T00:00:01Z" in run.stdout


def test_the_picture_shows_shares_of_the_top_rate_and_loses_nothing() -> None:
    rows = (Segment(0, 10, 800, ()), Segment(10, 11, 100, ()), Segment(15, 20, 400, ()))
    assert picture(rows, 0, 18, 800, " 12345678") == "88888888881    444"
    assert picture(rows, 0, 20_000, 800, " 12345678") == "1"
    side_by_side = (Segment(0, 10, 300, ("a",)), Segment(0, 10, 500, ("b",)))
    assert picture(side_by_side, 0, 18, 800, " 12345678") == "8888888888", "of several paths at once, the sum"


# --- what can be wrong ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("id", 7, "links[0].id: must be text (it is 7)"),
        ("id", "", "links[0].id: must not be empty"),
        ("id", "a\u001b[31mb", "links[0].id: has control characters"),
        ("source", None, "links[0].source: must be text"),
        ("target", "A", "links[0].target: source and target are both 'A'"),
        ("capacity_bps", "1", 'links[0].capacity_bps: must be a whole number, without a fraction or an exponent (it is "1")'),
        ("capacity_bps", 1.0, "links[0].capacity_bps: must be a whole number"),
        ("capacity_bps", True, "links[0].capacity_bps: must be a whole number"),
        (
            "capacity_bps",
            float("nan"),
            "links[0].capacity_bps: must be a whole number, without a fraction or an exponent (it is NaN)",
        ),
        ("capacity_bps", float("inf"), "links[0].capacity_bps: must be a whole number"),
        ("capacity_bps", 0, "links[0].capacity_bps: 0 is not in 1.."),
        ("capacity_bps", -5, "links[0].capacity_bps: -5 is not in 1.."),
        ("capacity_bps", 10**16, "links[0].capacity_bps: 10000000000000000 is not in 1.."),
        ("mtu_bytes", 0, "links[0].mtu_bytes: 0 is not in 576..65535"),
        ("channel_bps", 0, "links[0].channel_bps: 0 is not in 1.."),
        ("slot_us", 0, "links[0].slot_us: 0 is not in 1.."),
        ("metric", -1, "links[0].metric: -1 is below 0"),
        ("available", {}, "links[0].available: must be a list"),
        ("available", [[]], "links[0].available[0]: must be an object"),
        ("available", [{"bps": 1}], "links[0].available[0].from: is missing"),
        (
            "available",
            [{"from": "2026-01-01T00:00:00", "bps": 1}],
            "links[0].available[0].from: '2026-01-01T00:00:00': give a zone",
        ),
        (
            "available",
            [{"from": "2026-01-01T00:00:00Z", "bps": 9_000_000}],
            "links[0].available[0].bps: 9000000 is not in 0..8000000",
        ),
        ("available", [{"from": "2026-01-01T00:00:00Z", "bps": 1}] * 2, "links[0].available[1].from: steps must be in order"),
    ],
)
def test_a_bad_link_is_named(files: Files, field: str, value: object, words: str) -> None:
    files.links({**LINK, field: value})
    answer = files.plan("--json")
    assert (answer.status, answer.out) == (2, "")
    assert f"error: {files.network}: {words}" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("id", [], "requests[0].id: must be text"),
        ("source", "B", "requests[0].destination: source and destination are both 'B'"),
        ("volume_bytes", 0, "requests[0].volume_bytes: 0 is not in 1.."),
        ("volume_bytes", -1, "requests[0].volume_bytes: -1 is not in 1.."),
        ("volume_bytes", 10**18 + 1, "requests[0].volume_bytes: 1000000000000000001 is not in 1.."),
        ("volume_bytes", 1e9, "requests[0].volume_bytes: must be a whole number"),
        ("volume_bytes", None, "requests[0].volume_bytes: give either volume_bytes or duration_s, and not both"),
        ("rate_max_bps", 0, "requests[0].rate_max_bps: 0 is not in 1.."),
        ("rate_min_bps", 10**16, "requests[0].rate_min_bps: 10000000000000000 is not in 1.."),
        ("not_before", None, "requests[0].not_before: must be an RFC 3339 time in quotes"),
        ("not_before", 1_767_225_600, "requests[0].not_before: must be an RFC 3339 time in quotes"),
        ("not_before", "2026-01-01T00:00:00", "requests[0].not_before: '2026-01-01T00:00:00': give a zone"),
        ("not_before", "yesterday", "requests[0].not_before: 'yesterday': not an RFC 3339 time"),
        ("deadline", "2025-01-01T00:00:00Z", "requests[0].deadline: must lie after not_before"),
        ("duration_s", 60, "requests[0].volume_bytes: give either volume_bytes or duration_s"),
        ("duration_s", "60", 'requests[0].duration_s: must be a number of seconds (it is "60")'),
        ("duration_s", True, "requests[0].duration_s: must be a number of seconds"),
        ("duration_s", 0, "requests[0].duration_s: must be above 0"),
        ("duration_s", float("nan"), "requests[0].duration_s: must be above 0"),
        ("duration_s", 1e300, "requests[0].duration_s: must be above 0 and end before"),
        ("duration_s", 0.0000001, "requests[0].duration_s: is finer than a microsecond"),
        ("priority", 0.5, "requests[0].priority: must be a whole number"),
        ("paths", 0, "requests[0].paths: 0 is not in 1..16"),
        ("paths", "4", 'requests[0].paths: must be a whole number, without a fraction or an exponent (it is "4")'),
        ("path", [], "requests[0].path: names no link"),
        ("path", "L1", "requests[0].path: must be a list"),
        ("path", [1], "requests[0].path[0]: must be text (it is 1)"),
        ("split", 1, "requests[0].split: must be true or false (it is 1)"),
        ("shortest_segment_s", 0, "requests[0].shortest_segment_s: must be above 0"),
        ("shortest_segment_s", 86_401, "requests[0].shortest_segment_s: must be above 0 and at most 86400 s"),
        ("most_segments", 0, "requests[0].most_segments: 0 is not in 1.."),
    ],
)
def test_a_bad_request_is_named(files: Files, field: str, value: object, words: str) -> None:
    files.ask({**REQUEST, field: value})
    answer = files.plan("--json")
    assert (answer.status, answer.out) == (2, "")
    assert f"error: {files.requests}: {words}" in answer.err
    assert "Traceback" not in answer.err


def test_not_before_is_asked_for_because_now_is_no_input(files: Files) -> None:
    files.ask({key: value for key, value in REQUEST.items() if key != "not_before"})
    answer = files.plan()
    assert answer.status == 2
    assert 'requests[0].not_before: is missing: say when the transfer may begin, for example "2026-01-01T00:00:00Z"' in answer.err


def test_ids_are_unique(files: Files) -> None:
    files.links(LINK, {**LINK, "id": "L2"}, LINK)
    assert f'{files.network}: links[2].id: "L1" is links[0] already' in files.plan().err
    files.links(LINK)
    files.ask(REQUEST, REQUEST)
    answer = files.plan()
    assert answer.status == 2
    assert f'{files.requests}: requests[1].id: "r1" is requests[0] already' in answer.err


def test_all_mistakes_are_told_up_to_a_page(files: Files) -> None:
    files.links({**LINK, "capacity_bps": 0, "metric": -1}, {**LINK, "id": "L2", "slot_us": 0})
    assert files.plan().err.count("\n") == 3
    files.links(*({**LINK, "id": f"L{i}", "metric": "far"} for i in range(1_000)))
    answer = files.plan()
    assert answer.err.count("\n") == 21
    assert answer.err.endswith("... and 980 more\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON: Expecting value"),
        (b'{"links": [', "is not JSON: Expecting value: line 1 column 12"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[]", "the file: must be an object"),
        (b"null", "the file: must be an object"),
        (b"{}", "links: is missing"),
        (b'{"links": {}}', "links: must be a list"),
        (b'{"links": [null]}', "links[0]: must be an object"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"links": [{"capacity_bps": ' + b"9" * 5_000 + b"}]}", "is not JSON"),
    ],
)
def test_a_file_that_is_something_else(files: Files, content: bytes, words: str) -> None:
    files.network.write_bytes(content)
    answer = files.plan()
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {files.network}: ")
    assert words in answer.err


def test_files_that_cannot_be_read(files: Files, tmp_path: Path) -> None:
    answer = bwb("plan", "--network", tmp_path / "none.json", "--requests", files.requests)
    assert (answer.status, answer.err) == (2, f"error: {tmp_path / 'none.json'}: cannot be read: No such file or directory\n")
    answer = bwb("plan", "--network", files.network, "--requests", tmp_path)
    assert (answer.status, answer.err) == (2, f"error: {tmp_path}: cannot be read: Is a directory\n")


def test_an_unknown_planner_is_told_the_known_ones(files: Files) -> None:
    answer = files.plan(planner="nls")
    assert answer.status == 2
    assert "'nls' is unknown; there are: " in answer.err
    assert all(name in answer.err for name in PLANNERS)


def test_unknown_fields_are_named_and_ignored(files: Files) -> None:
    files.links({**LINK, "colour": "red"}, comment="a comment is welcome")
    files.ask({**REQUEST, "dead_line": "2026-01-01T00:00:00Z", "comment": "here, too"})
    answer = files.plan("--json")
    assert answer.status == 0
    assert answer.document["metrics"]["admitted"] == 1
    assert answer.err == (
        f"{files.network}: unknown fields are ignored: colour\n{files.requests}: unknown fields are ignored: dead_line\n"
    )


def test_a_planner_that_breaks_a_rule_is_our_bug_and_says_so(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def nonsense(*_: object) -> Plan:
        return Plan((Segment(0, 1, 1, ("L1",)),))

    monkeypatch.setattr(Vbls, "plan", nonsense)
    answer = files.plan()
    assert answer.status == 1
    assert "breaks a rule (a bug of ours, please report it)" in answer.err


# --- work that takes long ---------------------------------------------------------------------------------------------------------------

_SLOW = """
import time, typer
from broker.cli.patience import Work
from broker.cli.plan.commands import plan_command
from broker.planners import PLANNERS
from broker.planners.vbls import Vbls
class Slow(Vbls):
    def plan(self, *_, **__):
        print("begun", flush=True)
        time.sleep(60)
        raise AssertionError("nobody waits for this")
PLANNERS["vbls"] = Slow()
typer.run(plan_command)
"""


@pytest.mark.real_time
def test_ctrl_c_ends_it_whatever_it_is_doing(files: Files) -> None:
    words: list[str | Path] = [sys.executable, "-c", _SLOW, "--network", files.network, "--requests", files.requests]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
    assert (run.returncode, out, err) == (130, "", "interrupted; nothing was planned\n")


def test_work_says_how_far_it_is_and_hears_that_nobody_wants_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[float, str]] = []

    @contextmanager
    def bar() -> Iterator[Callable[[float, str], None]]:
        yield lambda part, text: shown.append((part, text))

    def task(work: Work[str]) -> str:
        work.told(0.5, "half of it")
        while not shown or shown[-1][0] != 0.5:
            time.sleep(0.001)
        work.told(0.7, "")
        while shown[-1][0] != 0.7:
            time.sleep(0.001)
        return f"{work.cancelled()}"

    monkeypatch.setattr(patience, "progress", bar)
    monkeypatch.setattr(patience, "_LONG_S", 0.0)
    monkeypatch.setattr(patience, "_GLANCE_S", 0.001)
    assert Work(task, "optimal plans").done() == "False"
    assert (0.5, "optimal plans: half of it") in shown
    assert (0.7, "optimal plans") in shown


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("2026-01-01T00:00:00Z")),
    lambda children: st.one_of(st.lists(children, max_size=3), st.dictionaries(st.text(max_size=5), children, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["link", "request"]), st.data())
def test_no_value_of_any_field_brings_a_traceback(files: Files, which: str, data: st.DataObject) -> None:
    """Whatever stands in a field: it is taken, or BadFile names the file and the field."""
    fields: dict[str, Any] = dict(LINK if which == "link" else REQUEST)
    optional = {
        "link": ["mtu_bytes", "slot_us", "available", "metric"],
        "request": ["deadline", "duration_s", "rate_max_bps", "path", "split", "shortest_segment_s"],
    }[which]
    field = data.draw(st.sampled_from([*fields, *optional]))
    fields[field] = data.draw(json_values)
    path, write, read = _WAYS[which](files)
    write(fields)
    try:
        read(path)
    except BadFile as error:
        assert str(error).startswith(f"{path}: {which}s[0].")
        assert str(error).isprintable() or "\n" in str(error)


def _link_way(files: Files) -> tuple[Path, Callable[..., None], Callable[[Path], object]]:
    return files.network, files.links, read_network


def _request_way(files: Files) -> tuple[Path, Callable[..., None], Callable[[Path], object]]:
    return files.requests, files.ask, read_requests


_WAYS = {"link": _link_way, "request": _request_way}
