# SPDX-License-Identifier: Apache-2.0
"""How often one caller may ask: token buckets in bounded memory, each kept as one time (the generic cell rate algorithm).

Each process counts for itself. Who was heard of longest ago is forgotten first, and begins with a full bucket again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from math import ceil

from broker.desk.ground.problems import Problem

_MAX_KEYS = 10_000


class Buckets:
    """`burst` at once, and then `per_s`; 0: without limit."""

    def __init__(self, name: str, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.burst = burst
        self._interval = 1 / per_s if per_s else 0.0
        self._clock = clock
        self._full: OrderedDict[str, float] = OrderedDict()  # when the bucket would be full again

    def take(self, key: str) -> None:
        """Raises Problem `too-many-requests` when there is nothing left."""
        if not self._interval:
            return
        now = self._clock()
        full = max(self._full.pop(key, now), now) + self._interval
        wait = full - now - self.burst * self._interval
        if wait > 0:
            self._full[key] = full - self._interval
            raise self._refusal(wait)
        self._full[key] = full
        if len(self._full) > _MAX_KEYS:
            self._full.popitem(last=False)

    def give_back(self, key: str) -> None:
        """Take back what the last request of `key` cost."""
        if key in self._full:
            self._full[key] -= self._interval

    def _refusal(self, wait: float) -> Problem:
        seconds = ceil(wait)
        limit = {"name": self.name, "requests": self.burst, "within_s": ceil(self.burst * self._interval)}
        return Problem(
            "too-many-requests",
            f"more than {1 / self._interval:g} requests a second for each {self.name}; try again in {seconds} s",
            {"retry_after_s": seconds, "limit": limit},
        )
