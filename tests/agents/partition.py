# SPDX-License-Identifier: Apache-2.0
"""Both agents lose the broker for a while, with transfers under way: what happens then, sampled once a second, and what is true at the end."""

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from broker.core.units import format_time
from tests.agents.cut import Relay, relay
from tests.agents.stack import Stack, wait_for
from tests.ports import free_port

SMALL, LARGE = "small.bin", "large.bin"
ENDED = ("FINISHED", "FAILED", "CANCELED", "EXPIRED")


@dataclass
class Course:
    """`states`: of each file, (seconds since the cut, state, code of its waiting_reason) whenever one of them changed."""

    cut_s: float
    states: dict[str, list[tuple[float, str, str | None]]] = field(default_factory=dict)
    least_booked_bps: int | None = None  # on the link, while the larger one was still to be sent by its plan
    ended: dict[str, str] = field(default_factory=dict)
    whole: dict[str, bool] = field(default_factory=dict)
    checksums: dict[str, bool] = field(default_factory=dict)
    back_after_s: float | None = None  # from the mend to both known ends
    audit_clean: bool = False

    def document(self) -> dict[str, Any]:
        return asdict(self)


class Split(Stack):
    """A stack whose agents reach the broker through a relay."""

    def __init__(self, directory: Path, **settings: str) -> None:
        super().__init__(directory, **settings)
        self.relay_port = free_port()

    @property
    def agents_url(self) -> str:
        return f"http://127.0.0.1:{self.relay_port}"


def play(running: Split, cut_s: float, sizes: dict[str, int], rate_bps: int) -> Course:
    """Book a file of each size at `rate_bps`, cut both agents off as soon as they have fetched them, mend after `cut_s`."""
    with relay(running.relay_port, running.port) as between:
        running.link(10 * rate_bps)
        running.enrol()
        digests = {name: running.file(name, size) for name, size in sizes.items()}
        booked = {name: running.submit(name, size, rate_max_bps=rate_bps) for name, size in sizes.items()}
        wait_for(lambda: _fetched(running), 20, "both agents have their assignments")
        course = _watch(running, between, cut_s, booked)
    for name, digest in digests.items():
        found = running.transfer(booked[name]["id"])
        course.whole[name] = running.arrived(name) == digest
        course.checksums[name] = found["checksum"] == f"sha256:{digest}" and found["bytes_done"] == sizes[name]
    course.audit_clean = running.clean()
    return course


def _fetched(running: Stack) -> bool:
    return all(host["fetched_revision"] == host["revision"] for host in running.call("GET", "/v1/hosts"))


def _watch(running: Split, between: Relay, cut_s: float, booked: dict[str, dict[str, Any]]) -> Course:
    course = Course(cut_s)
    between.cut()
    began = time.monotonic()
    finish = booked[LARGE]["plan"]["finish"]
    while time.monotonic() < began + cut_s:
        _note(running, course, booked, time.monotonic() - began)
        now = time.time_ns() // 1000
        if format_time(now + 1_000_000) < finish and format_time(now) > booked[LARGE]["plan"]["start"]:
            window = {"from": format_time(now), "to": format_time(now + 500_000)}
            steps = running.call("GET", "/v1/links/A-B/calendar", params=window)["steps"]
            least = min(step["booked_bps"] for step in steps)
            course.least_booked_bps = least if course.least_booked_bps is None else min(course.least_booked_bps, least)
        time.sleep(min(1, cut_s / 10))
    between.mend()
    mended = time.monotonic()

    def over() -> bool:
        _note(running, course, booked, time.monotonic() - began)
        shown = [running.transfer(transfer["id"]) for transfer in booked.values()]
        return all(item["state"] in ENDED and not item["assumed"] for item in shown)

    wait_for(over, 90 + 2 * cut_s, "what became of the transfers is known")
    course.back_after_s = round(time.monotonic() - mended, 1)
    course.ended = {name: running.transfer(transfer["id"])["state"] for name, transfer in booked.items()}
    return course


def _note(running: Stack, course: Course, booked: dict[str, dict[str, Any]], at_s: float) -> None:
    for name, transfer in booked.items():
        shown = running.transfer(transfer["id"])
        now = shown["state"], (shown["waiting_reason"] or {}).get("code")
        seen = course.states.setdefault(name, [])
        if not seen or seen[-1][1:] != now:
            seen.append((round(at_s, 1), *now))
