# SPDX-License-Identifier: Apache-2.0
"""What the experiment fixes: the link, the volumes, the strategies, and the ideal that all are compared with."""

from typing import NamedTuple

US_PER_S = 1_000_000

# The bottleneck counts Ethernet as RR-6205 does (section 3.3, figure 7): 1500 bytes of IP and 38 of framing.
CAPACITY_BPS = 500_000_000
MTU_BYTES, FRAMING_BYTES = 1500, 38
# 20 of IP, 20 of TCP, 12 of TCP time stamps, which Linux sends and the paper's ideal (1460 bytes) leaves out.
HEADER_BYTES = 52
SEGMENT_BYTES = MTU_BYTES - HEADER_BYTES

# The paper does not say what its switch had; a megabyte for a port of a gigabit was usual. 17 ms at our rate.
BUFFER_BYTES = 1_000_000

# The emulator looks for packets this often: two cores carry both ends and the link, and waking up for each was most of its work.
MODERATE_US = 40

# Of the time of both processors. A thousandth of two may be two of one, and the 99th percentile may lose twenty.
MAX_STOLEN = 0.002

RTTS_US = (100, 10_000, 100_000)
REPETITIONS = 20


class Strategy(NamedTuple):
    """How the two transfers share the link. `signal` starts the second of ViFi; `mechanism` holds those of spaghetti to their rates."""

    name: str
    label: str
    signal: str | None = None
    mechanism: str | None = None


IFS = Strategy("ifs", "IFS (no booking)")
VIFI = tuple(Strategy(f"vifi-{kind}", f"ViFi, {kind}", signal=kind) for kind in ("clock", "direct", "broker"))
SPAGHETTI = tuple(
    Strategy(f"spaghetti-{name}", f"spaghetti, {name}", mechanism=name) for name in ("pacing", "htb", "window", "userland")
)
STRATEGIES = {strategy.name: strategy for strategy in (IFS, *VIFI, *SPAGHETTI)}
PACED = "spaghetti-pacing"

# v, of v and 2v. At 100 ms half a round trip of propagation and what a start costs are the same milliseconds however long
# the transfer is, so there it is longer, to have them weigh as little as they may (the paper moved 45 GB in 388 s).
SMALLER_BYTES = {100: 60_000_000, 10_000: 60_000_000, 100_000: 150_000_000}


def payload_bps(capacity_bps: int = CAPACITY_BPS) -> int:
    """What the link carries of TCP payload when every packet is full."""
    return capacity_bps * SEGMENT_BYTES // (MTU_BYTES + FRAMING_BYTES)


def volumes(rtt_us: int) -> tuple[int, int]:
    """Bytes of the two transfers."""
    return SMALLER_BYTES[rtt_us], 2 * SMALLER_BYTES[rtt_us]


def ideal_us(rtt_us: int) -> float:
    """Completion of both on a link that is never idle (RR-6205, section 4.3): no start, no loss, and no propagation either."""
    return sum(volumes(rtt_us)) * 8 * US_PER_S / payload_bps()


def shares_bps() -> tuple[int, int]:
    """The rates of spaghetti: a third and two thirds."""
    return payload_bps() // 3, payload_bps() * 2 // 3


def rtt_label(rtt_us: int) -> str:
    return f"{rtt_us / 1000:g} ms"
