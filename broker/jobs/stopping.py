# SPDX-License-Identifier: Apache-2.0
"""Is the worker told to stop? Celery waits for running tasks, so long ones ask this and return their job to the queue."""

import mmap
import os
from typing import Any

from celery.signals import worker_process_init, worker_shutting_down

# One byte that the main process shares with the pool that it forks: no lock, so a signal handler may write it and a kill harms nothing.
_flag = mmap.mmap(-1, 1)
_parent = [os.getppid()]


@worker_shutting_down.connect
def _on_shutdown(**_: Any) -> None:
    _flag[0] = 1


@worker_process_init.connect
def _on_fork(**_: Any) -> None:
    _parent[0] = os.getppid()


def is_stopping() -> bool:
    """Told to, or the process that would tell is gone."""
    return _flag[0] == 1 or os.getppid() != _parent[0]
