# SPDX-License-Identifier: Apache-2.0
"""What a start signal costs between two senders (RR-6205, section 2.2, figures 4 and 5), measured by the agent's own command."""

import json
import os
import secrets
import time

from broker.lab.preflight import agent_binary
from tests.experiments.endhost.run import Signalling
from tests.experiments.endhost.stage import AGENT_PRIORITY, PAIRS, Stage

# One takes three round trips: a whole handshake there, and one back. A minute at 100 ms.
COUNTS = {100: 1000, 10_000: 1000, 100_000: 200}
_PORT = 7600


def run(stage: Stage, rtt_us: int) -> Signalling:
    """Between hosts on either side of the bottleneck, which is otherwise idle."""
    (near, far), *_ = PAIRS
    key = {**os.environ, "BWB_SIGNAL_KEY": secrets.token_hex(32)}
    own, other = (f"{stage.lab.host(name).address}:{_PORT}" for name in (near, far))
    agent = ["chrt", "--fifo", str(AGENT_PRIORITY), str(agent_binary())]
    echo = stage.lab.host(far).start([*agent, "signal-echo", "--listen", other], env=key)
    try:
        time.sleep(0.2)
        count = COUNTS[rtt_us]
        limit_s = 30 + count * 4 * rtt_us / 1e6
        ping = [*agent, "signal-ping", "--listen", own, "--count", str(count), other]
        said = stage.lab.host(near).run(ping, env=key, timeout=limit_s)
    finally:
        echo.terminate()
        echo.wait(10)
    found = json.loads(said.stdout)
    assert not found["lost"], f"{found['lost']} of {count} signals were lost on an idle link"
    return Signalling(rtt_us, [round(cost, 1) for cost in found["samples_us"]])
