# SPDX-License-Identifier: Apache-2.0
"""The normal client: a process that books a small transfer and reads it, again and again, and keeps each wait. Ends with its input.

Admissions go over one connection that is kept, reads over a new one each time: both have to work beside an attack.
"""

import http.client
import json
import select
import sys
import time
from typing import Any

PAUSE_S = 0.01
PATIENCE_S = 60.0
ASK = {"source": "A", "destination": "B", "volume_bytes": 1000, "rate_max_bps": 10**8}


class Normal:
    def __init__(self, host: str, port: int, token: str) -> None:
        self._address = (host, port)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._kept: http.client.HTTPConnection | None = None
        self.waits: list[tuple[str, float, float]] = []  # what, when on the monotonic clock of the machine, for how long
        self.faults: list[str] = []

    def once(self) -> None:
        booked = self._timed("admission", self._admit)
        if booked is not None:
            self._timed("read", lambda: self._read(booked))

    def _timed(self, what: str, call: Any) -> Any:
        begin = time.monotonic()
        try:
            return call()
        except (OSError, http.client.HTTPException, RuntimeError) as fault:
            self.faults.append(f"{what}: {type(fault).__name__}: {fault}"[:300])
            self._kept = None
            return None
        finally:
            self.waits.append((what, begin, time.monotonic() - begin))

    def _admit(self) -> str:
        if self._kept is None:
            self._kept = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        identifier: str = self._answer(self._kept, "POST", "/v1/transfers", json.dumps(ASK), 201)["id"]
        return identifier

    def _read(self, booked: str) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_S)
        try:
            self._answer(connection, "GET", f"/v1/transfers/{booked}", None, 200)
        finally:
            connection.close()

    def _answer(self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None, expected: int) -> Any:
        connection.request(method, path, body, self._headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != expected:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]!r}")
        return json.loads(content)


def main() -> None:
    normal = Normal(**json.loads(sys.stdin.readline()))
    normal.once()  # what is loaded and compiled at the first time is nobody's attack
    normal.waits.clear()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], PAUSE_S)[0]:
        normal.once()
    print(json.dumps({"waits": normal.waits, "faults": normal.faults}))


if __name__ == "__main__":
    main()
