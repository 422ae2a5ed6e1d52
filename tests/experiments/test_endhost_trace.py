# SPDX-License-Identifier: Apache-2.0
"""What the experiment reads of the emulator's trace, in the columns that the emulator writes."""

import re
from pathlib import Path

from tests.experiments.endhost.stage import Trace

EMULATOR = Path(__file__).parents[2] / "agents" / "internal" / "emulate" / "trace.go"


def test_payload_is_counted_at_the_ends_of_ticks(tmp_path: Path) -> None:
    constant = EMULATOR.read_text().partition("const TraceHeader = ")[2].partition("\n\n")[0]
    columns = "".join(re.findall(r"[a-z_,]{2,}", constant)).split(",")
    assert columns[:4] + columns[7:8] == ["time_us", "direction", "protocol", "source", "offered_bytes"]

    def line(at: int, direction: str, source: str, offered: int) -> str:
        return ",".join([str(at), direction, "tcp", source, "1", "to", "2", str(offered), *"0" * (len(columns) - 8)]) + "\n"

    path = tmp_path / "trace.csv"
    path.write_text(line(0, "left-right", "a", 999))
    trace = Trace(path)
    trace.skip()
    with path.open("a") as file:
        file.write(
            line(20_000, "left-right", "a", 10_000) + line(20_000, "left-right", "b", 50) + line(20_000, "right-left", "a", 50)
        )
        # FIN comes a round trip after the data: with it, 100 ms of nothing would count as slow.
        file.write(line(30_000, "left-right", "a", 30_000) + line(130_000, "left-right", "a", 170))
        file.write("140000,left-right,tcp,a,1,to,2,30")  # still being written
    assert [tuple(count) for count in trace.offered("a", 20_000, 800)] == [(20_000, 0), (30_000, 200), (40_000, 800)]
