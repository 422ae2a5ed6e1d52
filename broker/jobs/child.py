# SPDX-License-Identifier: Apache-2.0
"""The worker's side of the process that does a job: start it, ask it, kill it."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from broker.desk.ground.problems import Problem
from broker.jobs import messages

log = logging.getLogger(__name__)

_READ_AHEAD = 2**20


class ChildDied(Exception):
    """It ended without an answer: a crash, or the system ran out of memory."""


class WorkFailed(Exception):
    """A fault of ours in the work itself; asking again would end the same."""


class Child:
    """`async with Child(memory_mb) as child: await child.ask("plan", task, progress)`. It is killed at the end, whatever it does then."""

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        # In the worker's process group, so that what ends the group ends this too.
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "broker.jobs.work", str(os.getpid()), str(self._memory_mb)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_READ_AHEAD,
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id; only while it runs."""
        assert self._process is not None
        return self._process.pid

    async def ask(self, name: str, task: Any, progress: Callable[[float, str], None]) -> Any:
        """What the task gives. Raises Problem where it says no, ChildDied, or WorkFailed."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await messages.send_to(process.stdin, (name, task))
            while True:
                what, *said = await messages.receive_from(process.stdout)
                if what != "progress":
                    break
                progress(*said)
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await process.wait()
            raise ChildDied(
                f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process exited with {code}"
            ) from None
        match what, said:
            case "done", [result]:
                return result
            case "problem", [code_, detail, more]:
                raise Problem(code_, detail, more)
            case "memory", []:
                raise Problem(
                    "too-large",
                    f"it needs more than the {self._memory_mb} MB that a job may use (BWB_JOB_MEMORY_MB); make it smaller",
                )
        log.error("a job failed:\n%s", said[0])
        raise WorkFailed(str(said[0]).strip().rsplit("\n", 1)[-1])
