# SPDX-License-Identifier: Apache-2.0
"""What the caller of a simulation lends it: ears for progress, a way to stop it, and a watch."""

from collections.abc import Callable


class Cancelled(Exception):
    """The caller's `cancelled` said so."""


class Control:
    """`part` is what a share of the whole is measured in: `step(3)` after the third of `parts` is done."""

    def __init__(self, progress: Callable[[float, str], None], cancelled: Callable[[], bool], timer: Callable[[], float]) -> None:
        self._progress, self.cancelled, self.timer = progress, cancelled, timer
        self._begin, self._size, self._text = 0.0, 1.0, ""

    def enter(self, begin: float, end: float, text: str) -> None:
        """From now on `step` speaks of this stretch of the whole."""
        self._begin, self._size, self._text = begin, end - begin, text
        self.step(0.0)

    def step(self, share: float) -> None:
        """`share` of the stretch is done. Raises Cancelled."""
        if self.cancelled():
            raise Cancelled
        self._progress(self._begin + self._size * share, self._text)
