# SPDX-License-Identifier: Apache-2.0
"""The scenario of the demo: a link with changing capacity, and five transfers of real files over it."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.cli.quantities import now_us
from broker.client import BrokerClient, ProblemError
from broker.client.documents import Transfer
from broker.core.units import US_PER_S, format_time, parse_time

LINK, BACK = "A-B", "B-A"
SENDER, RECEIVER = "dtn-a", "dtn-b"
CAPACITY_BPS = 800_000_000
NIC_BPS = 10_000_000_000
# (seconds from the first request on, capacity of the link from then on). Stretched for larger files.
STEPS = ((0, CAPACITY_BPS), (4, 200_000_000), (9, 0), (11, 400_000_000), (16, CAPACITY_BPS))
# The default margin of 1 % suits transfers of minutes. These last seconds, and a sender loses about 30 ms at every start.
MARGIN_PPM = 40_000

_MB = 1_000_000
_GENERATED = (80 * _MB, 150 * _MB, 200 * _MB, 80 * _MB, 20 * _MB)
_CHUNK = 1 << 20
_MIN_REFUSED_BYTES = 50 * _MB  # a smaller one would fit into any gap


@dataclass(slots=True)
class Cast:
    """The files to transfer (names relative to the sender's served folder), and the answers to the requests."""

    folder: Path
    files: list[str] = field(default_factory=list)
    booked: list[Transfer] = field(default_factory=list)
    refused: dict[str, Any] = field(default_factory=dict)

    def size(self, index: int) -> int:
        """The size of file `index` in bytes."""
        return (self.folder / self.files[index]).stat().st_size

    def provide(self, given: Sequence[Path]) -> None:
        """Provide five files: the given ones (repeated if necessary), else files of random bytes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for index, size in enumerate(_GENERATED):
            original = given[index % len(given)] if given else None
            name = f"{index + 1}-{original.name if original else 'random.bin'}"
            target = self.folder / name
            if original is None:
                _generate(target, size)
            else:
                _link_or_copy(original, target)
            self.files.append(name)


def declare_network(broker: BrokerClient) -> None:
    """Create the link and its reverse, at full capacity until the hosts have enrolled. A broker may have them from an earlier demo."""
    for link_id, source, target in ((LINK, "A", "B"), (BACK, "B", "A")):
        link = {"source": source, "target": target, "capacity_bps": CAPACITY_BPS}
        try:
            broker.create_link({"id": link_id, **link})
        except ProblemError as problem:
            if problem.code != "exists":
                raise
            broker.change_link(link_id, {"capacity_bps": CAPACITY_BPS, "available": []})


def warm_up(broker: BrokerClient) -> None:
    """Have the broker compile its scans (once per installation): agents get 1.5 s notice, and the link dips within seconds."""
    request = {"source": SENDER, "destination": RECEIVER, "volume_bytes": 100 * _MB, "payload": {"path": "any"}}
    broker.quote(request, ["vbls", "fbls"])
    broker.quote(request | {"deadline": format_time(now_us() + 1_700_000)}, ["vbls", "fbls"])


def ask(broker: BrokerClient, cast: Cast) -> None:
    """Let the link's capacity dip from now on, and submit all five requests."""
    begin = now_us()
    stretch = max(1.0, sum(cast.size(index) for index in range(4)) / sum(_GENERATED[:4]))
    steps = [{"from": format_time(begin + round(second * stretch) * US_PER_S), "bps": bps} for second, bps in STEPS]
    broker.change_link(LINK, {"available": steps})

    def request(index: int, label: str, **more: Any) -> dict[str, Any]:
        payload = {"path": cast.files[index]}
        common = {"source": SENDER, "destination": RECEIVER, "project": "demo", "payload": payload, "label": label}
        return {**common, "volume_bytes": cast.size(index), **more}

    cast.booked.append(broker.submit(request(0, "1 FBLS, one fixed rate", planner="fbls", rate_max_bps=100_000_000)))
    cast.booked.append(broker.submit(request(1, "2 VBLS, at most 300 Mb/s", rate_max_bps=300_000_000)))
    cast.booked.append(broker.submit(request(2, "3 VBLS, all that is free")))

    wanted = request(3, "4 VBLS, with a deadline", rate_max_bps=200_000_000)
    earliest = _earliest(broker, wanted)
    cast.booked.append(broker.submit(wanted | {"deadline": format_time(earliest + 2 * US_PER_S)}))

    # Halfway to the earliest possible finish: the request must be refused, with counter-offers.
    wanted = request(4, "5 impossible") | {"volume_bytes": max(cast.size(4), _MIN_REFUSED_BYTES)}
    now, earliest = now_us(), _earliest(broker, wanted)
    start = now + 1_600_000  # the agents' lead, and a margin
    try:
        cast.booked.append(broker.submit(wanted | {"deadline": format_time(max((start + earliest) // 2, start))}))
    except ProblemError as problem:
        cast.refused = problem.document


def _earliest(broker: BrokerClient, request: dict[str, Any]) -> int:
    (quote,) = broker.quote(request)
    if quote["plan"] is None or quote["plan"]["finish"] is None:
        raise ProblemError(quote["problem"] or {})
    return parse_time(quote["plan"]["finish"])


def _generate(target: Path, size: int) -> None:
    with target.open("wb") as file:
        for begin in range(0, size, _CHUNK):
            file.write(os.urandom(min(_CHUNK, size - begin)))


def _link_or_copy(original: Path, target: Path) -> None:
    """Hard-link the file if the file system can, else copy it, because the agent serves only files inside its folder."""
    try:
        target.hardlink_to(original.resolve())
    except OSError:
        shutil.copyfile(original, target)
