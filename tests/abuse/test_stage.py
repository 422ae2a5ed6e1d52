# SPDX-License-Identifier: Apache-2.0
"""The stage itself: nothing happens beside the normal client, and a stall is seen."""

import os
import signal
import time

import pytest

from tests.abuse.stage import Stage

pytestmark = pytest.mark.real_time


def test_nothing_beside(stage: Stage) -> None:
    figures = stage.beside("nothing", lambda: time.sleep(1))
    assert figures["requests"] > 10


def test_a_stall_is_seen(stage: Stage) -> None:
    def stop() -> None:
        pid = stage.up.pid("api")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)

    before = len(stage.figures)
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception)):
        stage.beside("the API is stopped", stop)
    assert stage.figures.pop()["worst_wait_s"] > 0.4
    assert len(stage.figures) == before
