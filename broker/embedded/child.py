# SPDX-License-Identifier: Apache-2.0
"""One supervised process: started in a group of its own, logging to its file, and ended together with all that it forked."""

import asyncio
import ctypes
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)  # loaded here: between fork and exec is no place for it
_TAIL_BYTES = 2048


@dataclass(frozen=True)
class Program:
    """A command to run as a child, and how it is stopped."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    patience_s: float = 10.0  # between the stop signal and SIGKILL
    user: pwd.struct_passwd | None = None  # None: ours
    inherited: tuple[int, ...] = ()  # file descriptors that it needs


@dataclass
class Child:
    """A child process of `bwb up`: started, watched, stopped."""

    program: Program
    log: Callable[[], Path]
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)
    started: float = field(default=0.0, init=False)  # psutil's start time: with the pid, the identity of the process
    _since: float = field(default=0.0, init=False)
    _log_start: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """The program's name, as in `bwb.json` and in the log files."""
        return self.program.name

    @property
    def pid(self) -> int | None:
        """Its process id; None before the first start."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode if self._process else None

    @property
    def lived_s(self) -> float:
        """Seconds since its last start."""
        return time.monotonic() - self._since

    async def start(self, stdin: int = asyncio.subprocess.DEVNULL) -> None:
        """Start the program; what it prints is appended to its log."""
        path = self.log()
        self._log_start = path.stat().st_size
        user = self.program.user
        with path.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.program.command,
                env=self.program.environment,
                stdin=stdin,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a ctrl-C in the terminal is for the supervisor, which then stops all in order
                pass_fds=self.program.inherited,
                preexec_fn=_ends_with_parent(self.program.stop_signal) if sys.platform == "linux" else None,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )
        self._since = time.monotonic()
        with suppress(psutil.NoSuchProcess):  # so short-lived that nobody needs its identity
            self.started = psutil.Process(self._process.pid).create_time()

    async def feed(self, stdin: bytes) -> None:
        """Everything that its standard input will ever hold; for a child that was started with a pipe there."""
        assert self._process
        assert self._process.stdin
        self._process.stdin.write(stdin)
        self._process.stdin.close()
        with suppress(ConnectionError):  # it has exited already; the code that waits for it reports why
            await self._process.stdin.wait_closed()

    async def run(self, stdin: bytes = b"") -> int:
        """Start it, feed it, and wait for its end."""
        await self.start(asyncio.subprocess.PIPE)
        assert self._process
        await self._process.communicate(stdin)
        return await self.wait()

    async def wait(self) -> int:
        """Wait for its end, and see to it that none of its own children outlives it."""
        assert self._process, f"{self.name} was not started"
        code = await self._process.wait()
        self.kill()
        return code

    async def stop(self) -> None:
        """Stop it by its stop signal, by SIGKILL once its patience is over. No-op where it was never started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(self.program.stop_signal)
        try:
            await asyncio.wait_for(self._process.wait(), self.program.patience_s)
        except TimeoutError:
            self.kill()
            await self._process.wait()
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group, which may outlive its leader (Celery's beat does). No-op when nobody is left."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def tail(self) -> str:
        """The end of what it has logged since its last start."""
        path = self.log()
        with path.open("rb") as file:
            size = path.stat().st_size
            file.seek(max(0, size - _TAIL_BYTES, self._log_start if self._log_start <= size else 0))
            return file.read().decode(errors="replace").rstrip()

    def why_ended(self) -> str:
        """For people: by which signal or with which exit code it ended."""
        code = self.exit_code
        if code is None:
            return "still runs"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _ends_with_parent(stop_signal: signal.Signals) -> Callable[[], None]:
    parent = os.getpid()

    def before_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl: nobody would send the signal any more
            os._exit(1)

    return before_exec
