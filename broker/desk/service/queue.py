# SPDX-License-Identifier: Apache-2.0
"""The desk's queue: callers take turns, and each caller's commands stay in order.

A caller with a thousand commands does not delay another caller's single one.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from broker.desk.ground.batch import Answers
from broker.desk.ground.command import Alone, Preview


class Work(NamedTuple):
    """A command that waits for its turn."""

    command: Any
    future: asyncio.Future[Any]
    answers: Answers | None = None  # that were found for it elsewhere

    @property
    def caller(self) -> str:
        """Whose turn it takes: that of the token, agent or part of the broker that the command acts for."""
        command = self.command.command if isinstance(self.command, Preview) else self.command
        caller: str = getattr(command, "owner", None) or getattr(command, "actor", None) or ""
        return caller


class Queue:
    """Commands that wait; callers take turns."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Work]] = {}  # by caller, in the order of their turns; only callers with work

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, work: Work) -> None:
        """Add it behind what its caller has waiting."""
        self._waiting.setdefault(work.caller, deque()).append(work)

    def put_back(self, works: Sequence[Work]) -> None:
        """What was taken and not done comes first again, in the same order."""
        callers: dict[str, deque[Work]] = {}
        for work in works:
            callers.setdefault(work.caller, deque()).append(work)
        for caller, first in callers.items():
            first.extend(self._waiting.pop(caller, ()))
        self._waiting = callers | self._waiting

    def take(self, most: int) -> list[Work]:
        """What the next transaction shall do: one command of each caller in turn, up to `most`; or one that goes alone.

        A second use of one idempotency key waits for the next transaction, where the first is known.
        """
        chosen: list[Work] = []
        waiting: list[Work] = []
        keys: set[tuple[str, str]] = set()
        while self._waiting and len(chosen) < most:
            caller = next(iter(self._waiting))
            works = self._waiting[caller]
            alone = isinstance(works[0].command, Alone | Preview)
            if alone and chosen:
                break
            work = works.popleft()
            del self._waiting[caller]
            if works:
                self._waiting[caller] = works  # behind all others
            if alone:
                return [work]
            key = work.command.key
            if key is not None and key[:2] in keys:
                waiting.append(work)
                continue
            if key is not None:
                keys.add(key[:2])
            chosen.append(work)
        self.put_back(waiting)
        return chosen
