# SPDX-License-Identifier: Apache-2.0
"""The process that does long work: `python -m broker.jobs.work PARENT_PID MEMORY_MB`, tasks on stdin, answers on stdout.

It uses no database and no network: its input comes with the task and its result goes back, so it can be killed at any instant. It never
outlives the worker that started it, even inside a solver that does not let Python run.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from broker.desk.ground.problems import Problem
from broker.jobs import messages

_PR_SET_PDEATHSIG = 1
_NICE = 10  # what admits and what is due go first
_PROGRESS_S = 0.2

Progress = Callable[[float, str], None]
Task = Callable[[Any, Progress], Any]


def main() -> None:
    """The child process: take tasks from standard input and answer each, until the other end is closed."""
    parent, memory_mb = int(sys.argv[1]), int(sys.argv[2])
    _end_with(parent)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print belongs into the log
    with suppress(OSError):
        os.nice(_NICE)
    _bound_memory(memory_mb)
    while True:
        try:
            name, task = messages.receive(sys.stdin.buffer)
        except EOFError:
            return
        messages.send(answers, _outcome(name, task, _reporter(answers)))


def _outcome(name: str, task: Any, progress: Progress) -> tuple[Any, ...]:
    try:
        return ("done", _task(name)(task, progress))
    except Problem as problem:
        return ("problem", problem.code, problem.detail, problem.more)
    except MemoryError:
        return ("memory",)
    except Exception:  # a fault of ours: the worker logs it
        return ("fault", traceback.format_exc())


def _task(name: str) -> Task:
    """Each loads what it needs, and no more."""
    match name:
        case "plan":
            from broker.jobs.plan_work import improve_plans

            return improve_plans
        case "simulation":
            from broker.jobs.simulation_work import simulate

            return simulate
        case "prepare":
            from broker.jobs.rehearsal_work import prepare

            return prepare
        case "rehearse":
            from broker.jobs.rehearsal_work import rehearse_sent

            return rehearse_sent
    raise ValueError(name)


def _reporter(answers: BinaryIO) -> Progress:
    said_at, said = 0.0, ""

    def report(share: float, stage: str) -> None:
        nonlocal said_at, said
        now = time.monotonic()
        if stage != said or now - said_at >= _PROGRESS_S:
            said_at, said = now, stage
            messages.send(answers, ("progress", min(max(float(share), 0.0), 1.0), stage))

    return report


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    """Where the kernel has no such signal: the worker's end of the pipe closes with it."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


def _bound_memory(megabytes: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


if __name__ == "__main__":
    main()
