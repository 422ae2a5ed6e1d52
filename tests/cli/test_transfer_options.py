# SPDX-License-Identifier: Apache-2.0
"""`bwb transfer submit|quote|change` with holding times, paths, limits, previews and preemption, against a running broker."""

import json
from typing import Any

import httpx

from broker.planners import PLANNERS
from tests.cli.command import Bwb
from tests.live import Live

Ends = tuple[str, str]


def around(live: Live, ends: Ends) -> str:
    """Two more links of 1 Gb/s, around the direct one; as --via takes them."""
    source, target = ends
    middle = f"M{source}"
    with live.client() as client:
        for link_id, begin, end in ((f"{middle}1", source, middle), (f"{middle}2", middle, target)):
            client.create_link({"id": link_id, "source": begin, "target": end, "capacity_bps": 10**9})
    return f"{middle}1,{middle}2"


def submit(bwb: Bwb, ends: Ends, *words: str, **more: Any) -> Any:
    return bwb("transfer", "submit", *ends, "--json", *words, **more).json


def test_a_holding_time(bwb: Bwb, ends: Ends) -> None:
    made = submit(bwb, ends, "--duration", "30min", "--rate-max", "200M", "--rate-min", "100M")
    assert (made["duration_s"], made["volume_bytes"], made["rate_min_bps"]) == (1800, None, 10**8)
    assert "30m" in bwb("transfer", "show", made["id"]).out
    assert "30m" in bwb("transfer", "list", "--node", ends[0]).out
    bwb("transfer", "submit", *ends, "--duration", "30min", "--size", "1G", code=2)
    bwb("transfer", "submit", *ends, code=2)
    bwb("transfer", "submit", *ends, "--duration", "soon", code=2)
    changed = bwb("transfer", "change", made["id"], "--duration", "1h", "--json").json
    assert changed["duration_s"] == 3600


def test_paths_and_shape(bwb: Bwb, live: Live, link: str, ends: Ends) -> None:
    via = around(live, ends)
    made = submit(bwb, ends, "--size", "1G", "--via", via, "--most-segments", "3", "--shortest-segment", "500ms")
    assert made["path"] == made["plan"]["paths"][0] == via.split(",")
    assert (made["most_segments"], made["shortest_segment_s"]) == (3, 0.5)
    split = submit(bwb, ends, "--size", "1G", "--split", "--paths", "2", "--not-before", "+1h")
    assert sorted(split["plan"]["paths"]) == sorted([[link], via.split(",")]) and split["paths"] == 2
    ran = bwb("transfer", "submit", *ends, "--size", "1G", "--via", "nowhere", code=1)
    assert "there is no link 'nowhere'" in ran.err


def test_quotes_of_all_planners(bwb: Bwb, link: str, ends: Ends) -> None:
    ran = bwb("transfer", "quote", *ends, "--size", "1G", "--deadline", "+1h")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["Planner", *PLANNERS]
    assert link in ran.out and "predicts only" in ran.out
    quotes = bwb("transfer", "quote", *ends, "--size", "1G", "--planner", "vbls,fbls", "--json").json["quotes"]
    assert [quote["planner"] for quote in quotes] == ["vbls", "fbls"]
    refused = bwb("transfer", "quote", *ends, "--size", "100G", "--deadline", "+1min", "--planner", "vbls", code=1)
    assert "vbls: no" in refused.err and "--deadline" in refused.err and "--size" in refused.err
    assert all(step["booked_bps"] == 0 for step in bwb("link", "calendar", link, "--json").json["steps"])


def test_changes_and_previews(bwb: Bwb, ends: Ends) -> None:
    made = submit(bwb, ends, "--size", "10G", "--not-before", "+1h", "--deadline", "+2h")
    ran = bwb("transfer", "change", made["id"], "--size", "20G", "--rate-max", "500M", "--preview")
    assert "20 GB" in ran.out and "nothing was changed" in ran.err
    freed = bwb("transfer", "cancel", made["id"], "--preview")
    assert "would free 1 Gb/s" in freed.out and "nothing was changed" in freed.err
    assert bwb("transfer", "pause", made["id"], "--preview", "--json").json["freed"] == made["plan"]["segments"]
    assert bwb("transfer", "show", made["id"], "--json").json == made
    changed = bwb("transfer", "change", made["id"], "--size", "20G", "--without", "deadline", "--best-effort", "--json").json
    assert (changed["volume_bytes"], changed["deadline"], changed["best_effort"]) == (20 * 10**9, None, True)
    assert "infeasible" in bwb("transfer", "change", made["id"], "--size", "9P", "--deadline", "+2h", "--json", code=1).out
    bwb("transfer", "change", made["id"], code=2)


def test_preemption(bwb: Bwb, ends: Ends) -> None:
    times = ("--not-before", "2100-01-01T00:00:00Z", "--deadline", "2100-01-01T00:00:08Z")
    low = submit(bwb, ends, "--size", "1G", "--best-effort", *times)
    high = submit(bwb, ends, "--size", "1G", "--priority", "1", "--preempt", *times)
    shown = bwb("transfer", "show", low["id"]).out
    assert "preempted" in shown and high["id"] in shown and "best effort" in shown
    assert json.loads(bwb("transfer", "show", low["id"], "--json").out)["waiting_reason"]["code"] == "preempted"


def enrolled(bwb: Bwb, live: Live, ends: Ends) -> Ends:
    """A host at each end, whose agents never say a word."""
    names = f"dtn-{ends[0]}", f"dtn-{ends[1]}"
    for name, node in zip(names, ends, strict=True):
        token = bwb("host", "enrol", name, "--node", node, "--nic", "25G", "--json").json["token"]
        body = {"token": token, "data_address": "127.0.0.1:7411"}
        assert httpx.post(f"{live.url}/v1/agents/enrol", json=body).status_code == 201
    return names


def test_one_after_the_other(bwb: Bwb, live: Live, ends: Ends) -> None:
    hosts = enrolled(bwb, live, ends)
    file = ("--path", "x.h5", "--size", "1G")
    first = submit(bwb, hosts, *file)
    chained = (
        "--after",
        first["id"],
        "--signal",
        "broker",
        "--signal-timeout",
        "1500ms",
        "--on-timeout",
        "cancel",
        "--on-overrun",
        "fallback",
    )
    second = submit(bwb, hosts, *file, *chained)
    assert (second["after"], second["plan"]["start"] >= first["plan"]["finish"]) == (first["id"], True)
    assert second["signal"] == {"kind": "broker", "timeout_s": 1.5, "on_timeout": "cancel", "on_overrun": "fallback"}
    shown = bwb("transfer", "show", second["id"]).out
    assert f"after     {first['id']}" in shown and "waiting_for_predecessor" in shown
    assert "broker; without one after 1.5 s: cancel; if that one needs longer: fallback" in shown
    assert "signal" not in bwb("transfer", "show", first["id"]).out
    third = submit(bwb, hosts, *file, "--after", second["id"])
    assert third["signal"] == {"kind": "direct", "timeout_s": None, "on_timeout": "start", "on_overrun": "delay"}
    assert "after: there is no transfer 'tr_none'" in bwb("transfer", "submit", *hosts, *file, "--after", "tr_none", code=1).err
    assert "signal:" in bwb("transfer", "submit", *hosts, *file, "--signal", "direct", code=1).err
    bwb("transfer", "submit", *hosts, *file, "--after", first["id"], "--signal", "smoke", code=2)
