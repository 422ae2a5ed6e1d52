# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that tests start."""

import itertools
import os
import random
import socket

# Below those that kernels take for outgoing connections: a server that is killed and started again finds its own still free. The agents'
# own tests begin at 20,000.
_FIRST, _LAST = 10_000, 20_000
# Several processes test at once.
_next = itertools.count(random.Random(os.getpid()).randrange(_FIRST, _LAST))


def free_port() -> int:
    """A free port of the loopback, handed out once."""
    for number in itertools.islice(_next, _LAST - _FIRST):
        port = _FIRST + number % (_LAST - _FIRST)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise RuntimeError(f"no free port between {_FIRST} and {_LAST}")
