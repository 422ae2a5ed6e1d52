# SPDX-License-Identifier: Apache-2.0
"""Only what is proven to be ours is ended: a recorded pid may belong to a stranger by now."""

import subprocess
from pathlib import Path

import psutil
import pytest

from broker.embedded import orphans
from broker.embedded.home import Home


def _recorded(home: Home, process: subprocess.Popen[bytes], shift_s: float = 0) -> None:
    started = psutil.Process(process.pid).create_time() + shift_s
    home.remember_children({"redis": {"pid": process.pid, "started": started, "signal": 15}})


@pytest.mark.parametrize(
    ("marked", "shift_s", "ended"),
    [(True, 0, True), (True, 3600, False), (False, 0, False)],
    ids=["ours", "started at another time", "knows nothing of the state directory"],
)
def test_identity(tmp_path: Path, marked: bool, shift_s: float, ended: bool) -> None:
    home = Home(tmp_path / "state")
    environment = {"BWB_STATE_DIR": str(home.path)} if marked else {}
    with subprocess.Popen(["sleep", "60"], env=environment, cwd="/", start_new_session=True) as process:
        try:
            _recorded(home, process, shift_s)
            said: list[str] = []
            orphans.end(home, tmp_path / "sockets", said.append)
            assert (process.poll() is not None) == ended, said
            assert bool(said) == ended
            assert home.remembered_children() == {}
        finally:
            process.kill()


def test_the_group_of_a_dead_leader(tmp_path: Path) -> None:
    """A worker that was killed leaves its beat behind, in its group."""
    home = Home(tmp_path / "state")
    script = "sleep 60 & echo $!; wait"
    environment = {"BWB_STATE_DIR": str(home.path)}
    with subprocess.Popen(["sh", "-c", script], env=environment, start_new_session=True, stdout=subprocess.PIPE) as leader:
        assert leader.stdout
        member = psutil.Process(int(leader.stdout.readline()))
        _recorded(home, leader)
        leader.kill()
        leader.wait()
        assert member.is_running()
        orphans.end(home, tmp_path / "sockets", lambda line: None)
        member.wait(5)


def test_garbage_in_the_record(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    (home.path / "children.json").write_text("{")
    orphans.end(home, tmp_path / "sockets", lambda line: None)
