# SPDX-License-Identifier: Apache-2.0
"""`bwb up` on one machine: start, stop, and coming back from kill -9 of any of its processes."""

import os
import re
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.embedded.running import PARTS, Up, until
from tests.postgres import Server

pytestmark = pytest.mark.real_time

LINK = {"id": "L1", "source": "A", "target": "B", "capacity_bps": 10**9}


@pytest.fixture
def up() -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="bwb-up-") as directory:  # short: pytest's own names leave no room for socket paths
        one = Up(Path(directory) / "state")
        yield one
        one.clear()


def _freeze(pid: int) -> None:
    """So that it heeds nothing but SIGKILL. A signal that overtakes the SIGSTOP would still end it: wait."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, 5)


def test_it_starts_refuses_a_second_one_stops_and_goes_on(up: Up) -> None:
    up.start().ready()
    match = re.search(r"ready after ([\d.]+) s", up.said())
    assert match, up.said()
    assert float(match[1]) <= 10, up.said()

    info = up.info()
    assert set(info) == {"url", "pids"}
    assert set(info["pids"]) == set(PARTS)
    assert all(psutil.pid_exists(pid) for pid in info["pids"].values())
    assert stat.S_IMODE(up.state_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((up.state_dir / "admin.token").stat().st_mode) == 0o600
    assert stat.S_IMODE((up.state_dir / "secret.key").stat().st_mode) == 0o600
    assert up.get("/readyz").status_code == 200
    assert up.admin("POST", "/v1/links", LINK).status_code == 201
    token, key = (up.state_dir / "admin.token").read_text(), (up.state_dir / "secret.key").read_text()

    first = up.process
    refusal = up.refused()
    assert first
    assert f"pid {first.pid}, {info['url']}" in refusal
    assert up.get("/readyz").status_code == 200

    up.stop()
    assert not (up.state_dir / "bwb.json").exists()

    up.start().ready()
    assert up.admin("GET", "/v1/links/L1").json()["capacity_bps"] == 10**9
    assert ((up.state_dir / "admin.token").read_text(), (up.state_dir / "secret.key").read_text()) == (token, key)
    up.signal(signal.SIGTERM)
    assert up.ended() == 0
    assert up.left() == {}


def test_a_killed_child_comes_back(up: Up) -> None:
    up.start().ready()
    url = up.info()["url"]
    assert up.admin("POST", "/v1/links", LINK).status_code == 201
    for part in PARTS:
        before = up.info()["pids"]
        os.kill(before[part], signal.SIGKILL)
        until(lambda part=part, old=before[part]: up.pid(part) != old, 10, up.said)  # type: ignore[misc]
        until(lambda: up.get("/readyz").status_code == 200, 15, up.said)
        after = up.info()
        assert after["url"] == url
        assert {name for name in PARTS if after["pids"][name] != before[name]} == {part}, up.said()
        assert up.admin("GET", "/v1/links/L1").status_code == 200
        assert [words for words in up.left().values() if "--beat" in words] != [], "a worker runs"
    # A killed worker's pool and beat must not live on: one group, led by the recorded pid.
    until(lambda: {os.getpgid(pid) for pid, words in up.left().items() if "--beat" in words} == {up.pid("worker")}, 10, up.said)
    up.stop()


def test_the_worker_works_and_survives_redis(up: Up) -> None:
    log = up.state_dir / "logs" / "worker.log"
    up.start().ready()
    until(lambda: "periodic.tick" in log.read_text(), 20, lambda: up.said() + log.read_text()[-2000:])
    worker, redis = up.pid("worker"), up.pid("redis")
    os.kill(redis, signal.SIGKILL)
    until(lambda: up.pid("redis") != redis, 10, up.said)
    seen = len(log.read_text())
    until(lambda: "periodic.tick" in log.read_text()[seen:], 20, lambda: log.read_text()[seen:])
    assert up.pid("worker") == worker, up.said()
    up.stop()


def test_the_next_one_takes_over_after_kill_9(up: Up) -> None:
    up.start().ready()
    assert up.admin("POST", "/v1/links", LINK).status_code == 201
    old = up.info()["pids"]
    _freeze(old["redis"])  # cannot notice that its parent dies: the next `bwb up` has to find it
    up.signal(signal.SIGKILL)
    up.ended()
    up.start().ready()
    assert f"stopping redis (pid {old['redis']})" in up.said()
    assert not any(psutil.pid_exists(pid) for pid in old.values())
    assert up.admin("GET", "/v1/links/L1").status_code == 200
    up.stop()


def test_everything_dies_with_it(up: Up) -> None:
    up.start().ready()
    up.signal(signal.SIGKILL)
    up.ended()
    until(lambda: up.left() == {}, 10, lambda: str(up.left()))


def test_a_state_dir_too_long_and_odd_for_sockets(up: Up) -> None:
    up.state_dir = up.state_dir.with_name("a long, odd: näme " + "x" * 100) / "state"
    up.state_dir.parent.mkdir()
    up.start().ready()
    sockets = Path((up.state_dir / "run.path").read_text().strip())
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert up.get("/readyz").json()["wakeups"] is True
    up.signal(signal.SIGKILL)
    up.ended()
    up.start().ready()
    assert Path((up.state_dir / "run.path").read_text().strip()) == sockets, "found again, not left lying about"
    up.stop()
    assert not sockets.exists()


def test_a_busy_port(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        said = up.refused("--port", str(port))
    assert f"port {port} of 127.0.0.1 is in use by another program; give another --port" in said
    assert up.left() == {}


def test_ctrl_c_while_it_starts(up: Up) -> None:
    for moment in (0.6, 1.2, 2.0):
        up.start()
        time.sleep(moment)
        up.signal(signal.SIGINT)
        assert up.ended() in (0, -signal.SIGINT, 130, 1), up.said()
        until(lambda: up.left() == {}, 5, lambda: str(up.left()))
    up.start().ready().stop()


def test_a_second_ctrl_c_forces_it(up: Up) -> None:
    up.start().ready()
    _freeze(up.pid("worker"))
    up.signal(signal.SIGINT)
    time.sleep(0.6)
    began = time.monotonic()
    up.signal(signal.SIGINT)
    assert up.ended() == 1, up.said()
    assert time.monotonic() - began < 2
    until(lambda: up.left() == {}, 5, lambda: str(up.left()))


def test_servers_of_your_own(up: Up, postgres: Server) -> None:
    """None is started then; and Redis may be away, because it holds nothing that matters."""
    database = postgres.new_database()
    up.environment = {"BWB_DATABASE_URL": database, "BWB_REDIS_URL": f"unix://{up.state_dir}/nobody.sock"}
    up.start().ready()
    assert not up.pid("postgres") and not up.pid("redis")
    assert not (up.state_dir / "postgres").exists()
    assert up.admin("POST", "/v1/links", LINK).status_code == 201
    up.stop()
    postgres.drop(database)


def test_data_of_another_postgresql(up: Up) -> None:
    (up.state_dir / "postgres").mkdir(parents=True)
    (up.state_dir / "postgres" / "PG_VERSION").write_text("15\n")
    assert "was made by PostgreSQL 15, this is 18" in up.refused()
    until(lambda: up.left() == {}, 5, lambda: str(up.left()))


def test_a_part_that_fails_shows_the_end_of_its_log(up: Up) -> None:
    up.environment = {"BWB_SECRET_KEY": "short"}
    said = up.refused()
    assert "BWB_SECRET_KEY must have at least 32 characters" in said
    assert "logs/api.log" in said
    assert up.left() == {}


def test_a_state_dir_that_is_everybodys() -> None:
    assert "must be a private directory of yours" in Up(Path("/tmp")).refused()
    assert stat.S_IMODE(Path("/tmp").stat().st_mode) == 0o1777
