# SPDX-License-Identifier: Apache-2.0
"""The output of `bwb lab`: instructions, a line of throughput, and a table."""

from collections.abc import Iterator
from typing import Any

from broker.cli.quantities import show_duration, show_rate, show_size
from broker.lab import Lab
from broker.lab.services import DATA_PORT

_ARROWS = {"left-right": "left → right", "right-left": "left ← right"}
_LATE_US = 1000  # p99; above this the emulator's additional delay is no longer small


class Meter:
    """Rates between successive readings of the statistics."""

    def __init__(self) -> None:
        self._last: dict[str, Any] | None = None

    def line(self, now: dict[str, Any]) -> str:
        """Throughput since the last call, both directions; empty at the first call."""
        last, self._last = self._last, now
        if last is None:
            return ""
        elapsed_us = max(now["elapsed_us"] - last["elapsed_us"], 1)
        parts = []
        for way, here in now["directions"].items():
            before = last["directions"][way]
            carried = (here["forwarded"]["bytes"] - before["forwarded"]["bytes"]) * 8_000_000 // elapsed_us
            lost = _lost(here) - _lost(before)
            text = f"{_ARROWS[way]} {show_rate(carried)} of {show_rate(here['capacity_bps'])}"
            parts.append(text + (f", {lost} packets lost" if lost else "") + (", CUT" if here["cut"] else ""))
        late = max(here["lateness_us"]["p99"] for here in now["directions"].values())
        return "   ".join(parts) + (f"   (emulator {late / 1000:.1f} ms late: the machine is too busy)" if late > _LATE_US else "")


def _lost(way: dict[str, Any]) -> int:
    return sum(int(amount["packets"]) for amount in way["dropped"].values())


def how_to_go_on(running: Lab) -> str:
    """Instructions for the person who started the laboratory."""
    hosts = list(running.hosts.values())
    first = next(host for host in hosts if host.side == "left")
    other = next(host for host in hosts if host.side == "right")
    lines = ["", *(f"  {host.name:<8} {host.side:<6} {host.address}" for host in hosts), "", "in another terminal (as root):"]
    lines += [f"  bwb lab exec {first.name} -- ping -c 3 {other.address}"]
    lines += ["  bwb lab set --capacity 100M --rtt 50ms        bwb lab cut        bwb lab restore"]
    if broker := getattr(running, "broker", None):
        out = running.agents[first.name].out
        lines += [
            f"  export BWB_STATE_DIR={broker.state_dir}        # the broker; its dashboard: {broker.url}",
            f"  head -c 200M /dev/urandom > {out}/big",
            f"  bwb transfer submit {first.name} {other.name} --path big --size-of {out}/big --watch",
            f"agents listen on port {DATA_PORT}; files arrive in {running.agents[other.name].inbox}",
        ]
    return "\n".join([*lines, "ctrl-C takes it all down", ""])


def status_row(item: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """One line for each direction."""
    hosts = ", ".join(f"{name} {host['address']}" for name, host in item["hosts"].items())
    if item["link"] is None:
        yield item["name"], hosts, "the emulator does not answer", "", "", "", "", ""
        return
    for way, here in item["link"]["directions"].items():
        yield (
            item["name"],
            hosts,
            _ARROWS[way] + (" CUT" if here["cut"] else ""),
            show_rate(here["capacity_bps"]),
            show_duration(here["delay_us"]),
            show_size(here["forwarded"]["bytes"]),
            f"{_lost(here)} packets",
            show_duration(int(here["lateness_us"]["p99"])),
        )
