# SPDX-License-Identifier: Apache-2.0
"""A process that does nothing but sleep: how late it wakes up tells whether anybody here could have been on time. Ends with its input."""

import select
import sys
import time

EVERY_S = 0.005

if __name__ == "__main__":
    latest_s, before = 0.0, time.monotonic()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], EVERY_S)[0]:
        now = time.monotonic()
        latest_s, before = max(latest_s, now - before - EVERY_S), now
    print(latest_s)
