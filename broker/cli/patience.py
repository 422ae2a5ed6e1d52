# SPDX-License-Identifier: Apache-2.0
"""Long-running work: it runs in a second thread, while the main thread shows progress on standard error and handles ctrl-C.

A solver's native code does not react to ctrl-C, so it must not run in the thread that receives it.
"""

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from threading import Event, Thread
from typing import Generic, TypeVar

import typer

from broker.cli.simulate.show import progress

_Result = TypeVar("_Result")

_LONG_S = 1.0  # shorter work needs no bar
_GLANCE_S = 0.1
_GRACE_S = 3.0  # for work that was told to stop
_INTERRUPTED = 130


class Work(Generic[_Result]):
    """`task` gets this object: it reports progress through `told`, and checks `cancelled` to see whether to stop."""

    def __init__(self, task: "Callable[[Work[_Result]], _Result]", what: str) -> None:
        self._task, self._what = task, what
        self._part, self._text = 0.0, ""
        self._stop = Event()
        self._results: list[_Result] = []
        self._errors: list[BaseException] = []

    def told(self, part: float, text: str) -> None:
        """Called by the task: the fraction done, 0 to 1, and the current activity."""
        self._part, self._text = part, text

    def cancelled(self) -> bool:
        """True if ctrl-C was pressed."""
        return self._stop.is_set()

    def done(self) -> _Result:
        """The task's result; re-raises its exception. On ctrl-C: exit status 130."""
        thread = Thread(target=self._run, daemon=True)
        try:
            thread.start()
            thread.join(_LONG_S)
            with progress() if thread.is_alive() else nullcontext(lambda *_: None) as show:
                while thread.is_alive():
                    show(self._part, f"{self._what}: {self._text}" if self._text else self._what)
                    thread.join(_GLANCE_S)
        except KeyboardInterrupt:
            self._stop.set()
            typer.echo("interrupted; nothing was planned", err=True)
            thread.join(_GRACE_S)
            if thread.is_alive():
                sys.stderr.flush()
                os._exit(_INTERRUPTED)  # a regular exit would wait for the solver, or free memory that it still uses
            raise typer.Exit(_INTERRUPTED) from None
        for error in self._errors:
            raise error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._task(self))
        except BaseException as error:  # raised again in `done`
            self._errors.append(error)
