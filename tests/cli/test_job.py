# SPDX-License-Identifier: Apache-2.0
"""`bwb reoptimise` and `bwb job`, with a worker that looks."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.core.units import format_time
from broker.jobs.long import look_for_work
from broker.main import wall_clock
from broker.settings import Settings
from broker.store.session import Database
from tests.cli.command import Bwb
from tests.live import Live, live_server
from tests.postgres import Server as Postgres

pytestmark = pytest.mark.real_time


async def _look(database_url: str, stop: threading.Event) -> None:
    database = Database(database_url, pool_size=2)
    while not stop.is_set():
        await look_for_work(database, wall_clock, Settings(), stop.is_set)
        await asyncio.sleep(0.1)
    await database.close()


@pytest.fixture(scope="module")
def live(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """In place of the broker that other commands share: this one has a worker, and moves what it finds."""
    url = postgres.new_database()
    stop = threading.Event()
    worker = threading.Thread(target=lambda: asyncio.run(_look(url, stop)))
    with live_server(url, tmp_path_factory.mktemp("state")) as (running, _):
        worker.start()
        yield running
        stop.set()
        worker.join(20)
    postgres.drop(url)


@pytest.fixture
def late(live: Live, link: str) -> list[str]:
    """Two transfers that were booked as late as possible, and could come much earlier."""
    source, target = f"S{link[1:]}", f"T{link[1:]}"
    begin, deadline = (format_time(wall_clock() + seconds * 1_000_000) for seconds in (600, 1200))
    asked = {"source": source, "destination": target, "volume_bytes": 2 * 10**9, "project": link}
    with live.client() as client:
        return [client.submit(asked | {"not_before": begin, "deadline": deadline, "planner": "alap"})["id"] for _ in range(2)]


def test_look_first_then_apply(bwb: Bwb, late: list[str], link: str) -> None:
    shown = bwb("reoptimise", "--objective", "completion", "--project", link, "--time-limit", "5s")
    plan = next(word for word in shown.out.split() if word.startswith("plan_"))
    for text in ("DONE", "mean finish", "rate changes", "on time", "2 of 2 transfers move", *late, f"bwb job apply {plan}"):
        assert text in shown.out, shown.out
    assert "nothing is changed yet" in shown.out and "RUNNING" in shown.err
    assert plan in bwb("job", "list", "--kind", "plan").out
    assert "2 transfers have new plans" in bwb("job", "apply", plan).out
    assert "applied: every promise is kept" in bwb("job", "show", plan).out
    assert bwb("job", "apply", plan, "--json").json["result"]["applied"]
    assert "what is booked is as good as anything" in bwb("reoptimise", "--objective", "completion", "--project", link).out


def test_apply_at_once(bwb: Bwb, late: list[str], link: str) -> None:
    done = bwb("reoptimise", "--objective", "completion", "--link", link, "--apply", "--json").json
    assert {change["transfer_id"] for change in done["result"]["changes"]} == set(late) and done["result"]["applied"]


def test_a_result_that_holds_no_longer(bwb: Bwb, late: list[str], link: str) -> None:
    plan = bwb("reoptimise", "--objective", "completion", "--transfer", late[0], "--transfer", late[1], "--no-wait").out.strip()
    assert bwb("job", "wait", plan, "--json").json["state"] == "DONE"
    bwb("transfer", "cancel", late[0])
    refused = bwb("job", "apply", plan, code=1)
    assert "Conflict (409)" in refused.err and link in refused.err


def test_cancel(bwb: Bwb, tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"requests": 20_000, "load": 0.9, "planners": ["optimal"]}))
    job = bwb("job", "simulate", str(spec), "--no-wait").out.strip()
    while bwb("job", "show", job, "--json").json["state"] == "QUEUED":
        time.sleep(0.1)
    assert "stopp" in bwb("job", "cancel", job).out
    waited = bwb("job", "wait", job, code=1)
    assert "CANCELED" in waited.out
    assert bwb("job", "list", "--state", "CANCELED", "--kind", "simulation", "--json").json[0]["id"] == job
    assert f"{job} is CANCELED" in bwb("job", "cancel", job).out


def test_simulate(bwb: Bwb, tmp_path: Path, link: str) -> None:
    spec, net = tmp_path / "spec.json", tmp_path / "net.json"
    spec.write_text(json.dumps({"requests": 30, "load": 0.5, "planners": ["vbls", "fbls"]}))
    net.write_text(json.dumps({"links": [{"id": "X", "source": "A", "target": "B", "capacity_bps": 10**9}]}))
    table, plot = tmp_path / "out.csv", tmp_path / "out.png"
    shown = bwb("job", "simulate", str(spec), "--network", str(net), "--csv", str(table), "--plot", str(plot))
    assert "vbls" in shown.out and "fbls" in shown.out
    assert table.read_text().startswith("planner,") and plot.read_bytes().startswith(b"\x89PNG")
    assert bwb("job", "simulate", str(spec), "--json").json["request"]["network"] == "current"
    spec.write_text("[]")
    assert "must hold one object" in bwb("job", "simulate", str(spec), code=2).err
    spec.write_text('{"load": 0.5, "planners": ["astrology"]}')
    assert "astrology" in bwb("job", "simulate", str(spec), code=1).err
    assert "there is no plan" in bwb("job", "show", "plan_none", code=1).err
