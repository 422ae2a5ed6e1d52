# SPDX-License-Identifier: Apache-2.0
"""How often an address may fail to sign in. Tokens are too long to guess; this keeps those who try from the database and the log.

Each process counts for itself, in bounded memory: the addresses that failed longest ago are forgotten first.
"""

import time
from collections import OrderedDict

from broker.desk.problems import Problem

_MOST_ADDRESSES = 1000
_FAILURES = 10  # at once, and then one every _PAUSE_S
_PAUSE_S = 5.0


class Attempts:
    def __init__(self) -> None:
        # Since when an address would have used up all that it may fail, had it failed at the steady rate (a token bucket as one time).
        self._since: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises Problem `too-many-attempts`."""
        wait = self._since.get(address, 0.0) - time.monotonic() - (_FAILURES - 1) * _PAUSE_S
        if wait > 0:
            seconds = int(wait) + 1
            raise Problem(
                "too-many-attempts", f"too many sign-ins have failed; try again in {seconds} s", {"retry_after_s": seconds}
            )

    def failed(self, address: str) -> None:
        now = time.monotonic()
        self._since[address] = max(self._since.pop(address, now), now) + _PAUSE_S
        if len(self._since) > _MOST_ADDRESSES:
            self._since.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._since.pop(address, None)
