# SPDX-License-Identifier: Apache-2.0
"""Compares the outcome with the promises, from outside: the files themselves, the broker's answers, the audit."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from broker.cli import context
from broker.cli.demo.scenario import Cast
from broker.cli.progress import name_of, size_of, when_carried
from broker.cli.quantities import now_us, show_duration, show_size
from broker.client import BrokerClient
from broker.client.documents import Plan, Transfer
from broker.core.units import US_PER_S, format_time, parse_time

TOLERANCE = 0.02  # of the planned duration
SLACK_US = 300_000  # for opening a connection, the last fsync, the report


_BOOKED_ANEW = ("transfer.rebooked", "transfer.pulled_forward")


@dataclass(frozen=True, slots=True)
class Judged:
    """One transfer against its promise. Times in microseconds."""

    transfer: Transfer
    planned: Plan  # as promised; the broker shortens the plans of ended transfers
    source_digest: str
    received_digest: str | None
    rebooked: bool  # it was booked anew after falling behind or a pull forward: `planned` then no longer determines its rate

    @property
    def promised(self) -> int:
        """The finish in the first answer, in microseconds."""
        return parse_time(self.transfer["promised_finish"] or "")

    @property
    def allowed(self) -> int:
        """The tolerated deviation from the promise, in microseconds."""
        assert self.planned["start"] is not None
        return round(TOLERANCE * (self.promised - parse_time(self.planned["start"]))) + SLACK_US

    @property
    def deviation(self) -> int | None:
        """Microseconds from promise to finish, positive when late; None while it has not finished."""
        finish = self.transfer["actual_finish"]
        return None if finish is None else parse_time(finish) - self.promised

    @property
    def earliest(self) -> int:
        """The instant at which the plan has carried the volume without the margin; a gap in the plan may separate it from the finish."""
        finish = when_carried(self.planned["segments"], size_of(self.transfer))
        return self.promised if finish is None else finish

    @property
    def intact(self) -> bool:
        """True if the received file equals the source file, and the reported checksum matches."""
        return self.received_digest == self.source_digest and self.transfer["checksum"] == f"sha256:{self.source_digest}"

    def faults(self) -> Iterator[str]:
        """The deviations from the promise, in words."""
        name = name_of(self.transfer)
        if self.transfer["state"] != "FINISHED":
            yield f"{name} is {self.transfer['state']}: {self.transfer['waiting_reason']}"
            return
        assert self.deviation is not None
        if self.deviation > self.allowed:
            yield f"{name} finished {show_duration(self.deviation)} after the promise; {show_duration(self.allowed)} are allowed"
        if not self.rebooked and self.deviation < self.earliest - self.promised - self.allowed:
            yield f"{name} finished {show_duration(-self.deviation)} before the promise: it was faster than what was booked for it"
        if not self.intact:
            digests = f"sent {self.source_digest}, received {self.received_digest}, reported {self.transfer['checksum']}"
            yield f"{name}: SHA-256 differs: {digests}"


def judge(broker: BrokerClient, cast: Cast, received: Path) -> tuple[list[Judged], list[str]]:
    """All transfers judged, and the list of all faults."""
    judged = []
    for booked in cast.booked:
        path = (booked["payload"] or {})["path"]
        digest = _digest(received / path) if (received / path).exists() else None
        rebooked = any(event["action"] in _BOOKED_ANEW for event in broker.history(booked["id"]))
        judged.append(Judged(broker.transfer(booked["id"]), booked["plan"], _digest(cast.folder / path), digest, rebooked))
    faults = [fault for item in judged for fault in item.faults()]
    if cast.refused.get("status") != 409 or not cast.refused.get("counter_offers"):
        faults.append(f"the impossible request was not refused with a counter-offer: {cast.refused or 'it was admitted'}")
    for link in broker.links():
        steps = broker.calendar(link["id"], format_time(now_us()))["steps"]
        if any(step["booked_bps"] for step in steps):
            faults.append(f"capacity of {link['id']} was not given back: {steps}")
    audit = broker.audit()
    if not audit["clean"]:
        faults.append(f"the audit found violations: {audit['violations']}")
    return judged, faults


def table(judged: list[Judged], begin_us: int) -> Table:
    """A row for each transfer."""
    rows = context.table(
        *("Transfer", "Size", "Begin", "Planned finish", "Actual finish", "Deviation", "Allowed", "SHA-256"),
        right=("Size", "Begin", "Planned finish", "Actual finish", "Deviation", "Allowed"),
    )
    for item in judged:
        good = not list(item.faults())
        finish, start = item.transfer["actual_finish"], item.planned["start"]
        rows.add_row(
            Text(name_of(item.transfer)),
            show_size(size_of(item.transfer)),
            _after(begin_us, start),
            _after(begin_us, item.transfer["promised_finish"]),
            _after(begin_us, finish),
            Text("-" if item.deviation is None else f"{item.deviation / US_PER_S:+.3f} s", style="green" if good else "bold red"),
            f"+{item.allowed / US_PER_S:.3f} s",
            Text(f"equal {item.source_digest[:12]}", style="green") if item.intact else Text("DIFFERS", style="bold red"),
        )
    return rows


def refusal(document: Mapping[str, Any]) -> Text:
    """The answer to the request that cannot be met."""
    finish = next((offer["finish"] for offer in document.get("counter_offers", []) if "finish" in offer), "?")
    return Text(f"5 impossible: refused ({document.get('status')}), limited by {(document.get('binding') or {}).get('link')}; "
                f"counter-offer: done at {finish}")  # fmt: skip


def _after(begin_us: int, time: str | None) -> str:
    return "-" if time is None else f"{(parse_time(time) - begin_us) / US_PER_S:.3f} s"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
