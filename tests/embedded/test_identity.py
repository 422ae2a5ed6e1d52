# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL does not run as root. The three ways round that: a user namespace, another user, and not being root."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from numba.core.caching import UserProvidedCacheLocator

import broker.core
import broker.planners
import broker.simulate
from tests.core.grid import EFFORT_PERCENT
from tests.embedded.running import Up

NOBODY = 65534

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(os.geteuid() != 0, reason="who is not root has only one way, which tests/embedded/test_up.py goes"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bwb-up-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def _machine_code(folder: Path) -> Path:
    """A copy of root's compiled scans that an ordinary user may use and add to."""
    folder.mkdir()
    for package in (broker.core, broker.planners, broker.simulate):
        (source,) = package.__path__
        here = folder / UserProvidedCacheLocator.get_suitable_cache_subpath(f"{source}/any.py")  # type: ignore[no-untyped-call]
        here.mkdir()
        for compiled in Path(source, "__pycache__").glob("*.nb?"):
            shutil.copy2(compiled, here)
        os.chown(here, NOBODY, NOBODY)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def test_as_an_ordinary_user(place: Path) -> None:
    # May read everywhere, because python and the checkout may lie under /root; may write nowhere but here, and has no home.
    become: tuple[str, ...] = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    become += ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--")
    if subprocess.run([*become, sys.executable, "-V"], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs setpriv, and CAP_DAC_READ_SEARCH to give away")
    os.chown(place, NOBODY, NOBODY)
    # With all cases, the broker compiles for this user: twenty seconds of a slow core.
    compiled = {} if EFFORT_PERCENT >= 100 else {"NUMBA_CACHE_DIR": str(_machine_code(place / "compiled"))}
    one = Up(place / "state", {"HOME": "/nonexistent", **compiled}, prefix=become)
    try:
        one.start().ready(150)
        for part in ("api", "worker", "postgres", "redis"):
            assert psutil.Process(one.pid(part)).uids().real == NOBODY
        assert one.admin("GET", "/v1/links").status_code == 200
        one.stop()
    finally:
        one.clear()


def test_as_root_where_user_namespaces_are_forbidden(place: Path) -> None:
    """As in most containers: `unshare` fails, and PostgreSQL gets a user of its own."""
    tools = place / "bin"
    tools.mkdir()
    (tools / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (tools / "unshare").chmod(0o755)
    one = Up(place / "state")
    try:
        one.start().ready().stop()  # made by root in a namespace ...
        one.environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
        one.start()
        if _unreachable(one):
            pytest.skip(f"this checkout cannot be reached by another user: {one.said()}")
        one.ready()
        owner = psutil.Process(one.pid("postgres")).username()
        assert owner in {"postgres", "nobody"}
        assert (one.state_dir / "postgres").owner() == owner
        assert one.admin("GET", "/v1/links").status_code == 200
        one.stop()
        one.environment = {}
        one.start().ready()  # ... and back
        assert (one.state_dir / "postgres").owner() == pwd.getpwuid(0).pw_name
        one.stop()
    finally:
        one.clear()


def _unreachable(one: Up) -> bool:
    assert one.process
    try:
        one.process.wait(3)
    except subprocess.TimeoutExpired:
        return False
    return "cannot reach" in one.said()
