# SPDX-License-Identifier: Apache-2.0
"""How often a sign-in may fail, for each token that is tried and the address that tries it; and a line in the log of each that does.

A token of 256 bits is not guessed; this keeps a page that goes on trying a wrong one from the database and the log, without locking out who
shares its address. Who tries many is held back by what an address may ask (rates.py). Each process counts for itself, in bounded memory.
"""

import hashlib
import logging

from broker.api.rates import Buckets
from broker.desk.ground.problems import Problem

log = logging.getLogger(__name__)

_FAILURES, _PER_S = 10, 0.2  # at once, and then one every five seconds
_LINES, _LINES_PER_S = 20, 0.1


class Attempts:
    """Failed sign-ins by account and address: each one makes the next attempt wait longer."""

    def __init__(self) -> None:
        self._failures = Buckets("sign-in", _PER_S, _FAILURES)
        self._lines = Buckets("line", _LINES_PER_S, _LINES)
        self._unsaid = 0

    def take(self, address: str, token: str) -> None:
        """Raises Problem `too-many-attempts`. What does not fail is given back by `succeeded`."""
        try:
            self._failures.take(_key(address, token))
        except Problem as problem:
            seconds = problem.more["retry_after_s"]
            raise Problem(
                "too-many-attempts", f"too many sign-ins have failed; try again in {seconds} s", {"retry_after_s": seconds}
            ) from None

    def failed(self, address: str, code: str) -> None:
        """Count a failure. Raises Problem once there are too many."""
        try:
            self._lines.take("")
        except Problem:
            self._unsaid += 1
            return
        unsaid = f" ({self._unsaid} more since the last line)" if self._unsaid else ""
        log.warning("sign-in from %s refused: %s%s", address or "a local socket", code, unsaid)
        self._unsaid = 0

    def succeeded(self, address: str, token: str) -> None:
        """Forget the failures of this address with this token."""
        self._failures.give_back(_key(address, token))


def _key(address: str, token: str) -> str:
    return f"{address} {hashlib.sha256(token.encode()).hexdigest()}"
