# SPDX-License-Identifier: Apache-2.0
"""Every client command against a running broker: what it does, and what it says when it cannot."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from broker.cli.audit import MEANINGS
from broker.store.audit import CHECKS
from tests.cli.command import Bwb
from tests.live import Live
from tests.ports import free_port

Ends = tuple[str, str]


def submit(bwb: Bwb, ends: Ends, *words: str, **more: Any) -> Any:
    return bwb("transfer", "submit", *ends, "--json", *words, **more).json


# -- finding the broker ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [("audit",), ("token", "list"), ("link", "list"), ("host", "list"), ("transfer", "list"), ("transfer", "watch", "tr_1")],
    ids=" ".join,
)
def test_without_a_broker_every_command_says_so_and_ends_with_3(bwb: Bwb, tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = bwb(*words, "--state-dir", str(tmp_path), code=3)
    assert "no broker runs on" in ran.err
    assert "bwb up" in ran.err
    assert ran.out == ""


def test_a_broker_that_does_not_answer(bwb: Bwb) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    ran = bwb("audit", code=3, env={"BWB_URL": url, "BWB_TOKEN": "x", "BWB_PATIENCE_S": "0.3"})
    assert f"no answer from {url}" in ran.err


def test_bwb_url_needs_bwb_token(bwb: Bwb, live: Live) -> None:
    assert "BWB_TOKEN is not set" in bwb("audit", code=3, env={"BWB_URL": live.url}).err
    assert "http://" in bwb("audit", code=3, env={"BWB_URL": "broker:7410", "BWB_TOKEN": "x"}).err
    bwb("audit", env={"BWB_URL": live.url, "BWB_TOKEN": live.token, "BWB_STATE_DIR": "/nowhere"})


def test_a_wrong_token_is_refused(bwb: Bwb, live: Live) -> None:
    ran = bwb("audit", code=1, env={"BWB_URL": live.url, "BWB_TOKEN": "bwb_wrong"})
    assert "(401)" in ran.err
    ran = bwb("audit", "--json", code=1, env={"BWB_URL": live.url, "BWB_TOKEN": "bwb_wrong"})
    assert ran.json["status"] == 401


# -- audit, tokens -----------------------------------------------------------------------------------------------------------------------


def test_audit(bwb: Bwb) -> None:
    shown = bwb("audit").out
    assert "all invariants hold" in shown
    assert all(name in shown for name in CHECKS)
    assert bwb("audit", "--json").json["clean"] is True
    assert MEANINGS.keys() == CHECKS.keys()


def test_limits_of_a_token_are_shown_and_set(bwb: Bwb) -> None:
    made = bwb(
        "token", "create", "student", "-s", "submit", "--max-open", "100", "--max-ahead", "7d", "--max-jobs", "unlimited", "--json"
    ).json
    shown = bwb("token", "show", made["id"]).out
    assert "0 of 100 (its own)" in shown and "7d" in shown and "0 of unlimited (its own)" in shown, shown
    changed = bwb("token", "set", made["id"], "--max-open", "default", "--max-priority", "5", "--json").json["limits"]
    assert changed["open_transfers"]["default"] and changed["priority"] == {"value": 5, "default": False, "used": None}
    assert changed["horizon_s"]["value"] == 7 * 86_400
    bwb("token", "set", made["id"], "--max-open", "many", code=2)
    bwb("token", "set", made["id"], code=2)


def test_tokens_are_made_listed_and_revoked(bwb: Bwb, live: Live) -> None:
    made = bwb("token", "create", "workflows", "-s", "read", "-s", "submit", "--expires", "+30d")
    secret = made.out.strip()
    assert secret.startswith("bwb_")
    assert secret not in made.err
    env: dict[str, str | None] = {"BWB_URL": live.url, "BWB_TOKEN": secret}
    bwb("transfer", "list", env=env)
    assert "needs the scope operate" in bwb("audit", code=1, env=env).err
    (listed,) = [token for token in bwb("token", "list", "--json").json if token["name"] == "workflows"]
    assert listed["scopes"] == ["read", "submit"]
    assert listed["id"] in bwb("token", "list").out
    bwb("token", "revoke", listed["id"])
    assert "(401)" in bwb("transfer", "list", code=1, env=env).err
    assert bwb("token", "revoke", "tok_unknown", "--json", code=1).json["status"] == 404
    bwb("token", "create", "x", "-s", "root", code=2)


# -- links -------------------------------------------------------------------------------------------------------------------------------


def test_links_are_made_shown_changed_and_deleted(bwb: Bwb) -> None:
    bwb("link", "create", "La", "Sa", "Ta", "--capacity", "10G", "--both", "--mtu", "9000", "--slot", "100ms")
    link = bwb("link", "show", "La~back", "--json").json
    assert (link["source"], link["capacity_bps"], link["mtu_bytes"], link["slot_us"]) == ("Ta", 10**10, 9000, 100_000)
    changed = bwb("link", "change", "La", "--capacity", "40G", "--available", "+1h=2G", "--available", "+2h=40G", "--json").json
    assert [step["bps"] for step in changed["available"]] == [2 * 10**9, 4 * 10**10]
    assert "40 Gb/s*" in bwb("link", "list").out
    assert bwb("link", "change", "La", "--steady", "--json").json["available"] == []
    assert "40 Gb/s" in bwb("link", "show", "La").out
    bwb("link", "delete", "La~back")
    assert bwb("link", "show", "La~back", "--json", code=1).json["status"] == 404


def test_links_of_a_file(bwb: Bwb, tmp_path: Path) -> None:
    link = {"id": "Lf", "source": "Sf", "target": "Tf", "capacity_bps": 10**9, "mtu_bytes": None, "channel_bps": None, "slot_us": 1}
    file = tmp_path / "NET.json"
    file.write_text(json.dumps({"links": [link, link | {"id": "Lf2"}]}))
    assert [made["id"] for made in bwb("link", "create", "--file", str(file), "--json").json] == ["Lf", "Lf2"]
    assert "there is a link 'Lf' already" in bwb("link", "create", "--file", str(file), code=1).err
    assert "want {" in bwb("link", "create", "--file", "-", stdin="[]", code=2).err
    assert "is not JSON" in bwb("link", "create", "--file", "-", stdin="{", code=2).err
    assert "cannot be read" in bwb("link", "create", "--file", str(tmp_path / "none"), code=2).err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("create", "L", "A"), "give ID SOURCE TARGET"),
        (("create", "L", "A", "B", "--capacity", "10MB"), "is no rate"),
        (("create", "L", "A", "B", "--capacity", "1G", "--available", "+1h"), "write TIME=RATE"),
        (("create", "L", "A", "B", "--capacity", "1G", "--slot", "1"), "is no duration"),
        (("change", "L"), "give at least one thing"),
        (("window", "L"), "give --to"),
        (("window", "L", "--to", "tomorrow"), "not an RFC 3339 time"),
    ],
)
def test_what_makes_no_sense_is_not_sent(bwb: Bwb, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in " ".join(bwb("link", *words, code=2).err.replace("│", " ").split())


def test_lowering_a_link_names_the_promises_and_replan_goes_on(bwb: Bwb, link: str, ends: Ends) -> None:
    booked = submit(bwb, ends, "--size", "50G", "--label", "night run")
    refused = bwb("link", "change", link, "--capacity", "100M", code=1)
    assert "breaks" in refused.err.lower()
    assert booked["id"] in refused.err
    assert "night run" in refused.err
    ran = bwb("link", "change", link, "--capacity", "100M", "--replan")
    assert f"planned anew: {booked['id']}" in ran.out
    assert f"promises broken: {booked['id']}" in ran.out


def test_a_preview_of_a_loss_names_what_would_become_of_each(bwb: Bwb, link: str, ends: Ends) -> None:
    booked = submit(bwb, ends, "--size", "50G", "--label", "night run")
    lost = f"{booked['id']} (night run): lost: link {link} was deleted"
    for words in (("delete", link), ("change", link, "--capacity", "0"), ("window", link, "--to", "+10000h", "--kind", "outage")):
        out = bwb("link", *words, "--preview").out
        assert f"promises broken: {booked['id']}" in out and "a preview: nothing was changed" in out
        assert lost in out or words[0] != "delete"
        foreseen = bwb("link", *words, "--preview", "--json").json
        assert foreseen["preview"] and foreseen["broken"] == [booked["id"]]
    assert bwb("transfer", "show", booked["id"], "--json").json == booked
    bwb("link", "delete", link, code=1)
    done = bwb("link", "delete", link, "--replan").out
    assert lost in done and f"{link} is deleted" in done
    assert bwb("transfer", "show", booked["id"], "--json").json["state"] == "FAILED"


def test_windows_come_and_go(bwb: Bwb, link: str) -> None:
    made = bwb("link", "window", link, "--from", "+2h", "--to", "+4h", "--reason", "line card", "--json").json
    (window,) = made["windows"]
    assert (window["bps"], window["reason"], made["window"]) == (0, "line card", window["id"])
    assert "line card" in bwb("link", "show", link).out
    assert bwb("link", "window", link, "--remove", window["id"], "--json").json["windows"] == []
    bwb("link", "window", link, "--remove", window["id"], code=1)


def test_the_calendar_is_a_plot(bwb: Bwb, link: str, ends: Ends) -> None:
    """Half of the hour is booked in full: half of the columns are, and the other half is free."""
    submit(bwb, ends, "--size", str(10**9 * 1800 // 8))
    plot = bwb("link", "calendar", link, "--to", "+1h", "--steps").out.splitlines()
    assert plot[0].startswith(f"{link}  █ booked  ░ free")
    assert plot[1].startswith("1 Gb/s ┤")
    cells = plot[1].split("┤")[1]
    assert abs(cells.count("█") - cells.count("░")) <= 2
    assert cells.startswith("█")
    assert cells.endswith("░")
    assert any("1 Gb/s" in line and "0 b/s" in line for line in plot[10:])
    found = bwb("link", "calendar", link, "--json").json
    assert found["steps"][0]["booked_bps"] == 10**9
    bwb("link", "calendar", "nowhere", code=1)


# -- hosts -------------------------------------------------------------------------------------------------------------------------------


def test_enrol_prints_commands_with_the_token_in_their_environment(bwb: Bwb, link: str, ends: Ends, live: Live) -> None:
    ran = bwb("host", "enrol", f"dtn-{link}", "--node", ends[0], "--nic", "25G", "--ttl", "2d")
    install, command = (line.strip() for line in ran.out.splitlines())
    download, install = install.split(" | ")
    assert download == f"curl -fsS {live.url}/v1/agents/install.sh"
    for line, wanted in (
        (install, f"sh -s -- --advertise dtn-{link}:7411 --tls"),
        (command, f"-u bwb bwb-agent enrol --broker {live.url} "),
    ):
        variable, program = line.split(" ", 1)
        assert variable.startswith("BWB_ENROLMENT_TOKEN=bwe_") and "bwe_" not in program, (
            "what follows is in every list of processes"
        )
        assert program.startswith(f"sudo --preserve-env=BWB_ENROLMENT_TOKEN {wanted}")
    assert "bwe_" not in ran.err
    assert "no link of the network touches" in bwb("host", "enrol", "dtn", "--node", "nowhere", "--nic", "25G", code=1).err


def test_hosts_are_listed_and_drained(bwb: Bwb, link: str, ends: Ends, live: Live) -> None:
    import httpx

    name = f"dtn-{link}"
    token = bwb("host", "enrol", name, "--node", ends[0], "--nic", "25G", "--json").json["token"]
    body = {"token": token, "data_address": "127.0.0.1:7411"}
    assert httpx.post(f"{live.url}/v1/agents/enrol", json=body).status_code == 201
    assert name in bwb("host", "list").out
    assert bwb("host", "drain", name, "--json").json["drained"] is True
    assert "drained" in bwb("host", "show", name).out
    assert "takes new transfers" in bwb("host", "drain", name, "--undo").out
    assert any(host["name"] == name for host in bwb("host", "list", "--json").json)
    bwb("host", "show", "nobody", code=1)


# -- transfers ---------------------------------------------------------------------------------------------------------------------------


def test_submit_shows_what_is_booked(bwb: Bwb, ends: Ends) -> None:
    words = ("--size", "1GB", "--rate-max", "100MB/s", "--label", "x [1/2]", "--project", "run7", "--metadata", '{"step": 3}')
    ran = bwb("transfer", "submit", *ends, *words)
    assert "RESERVED" in ran.out
    assert "x [1/2]" in ran.out
    assert "800 Mb/s" in ran.out
    (listed,) = bwb("transfer", "list", "--project", "run7", "--node", ends[0], "--json").json
    assert (listed["volume_bytes"], listed["rate_max_bps"], listed["metadata"]) == (10**9, 800_000_000, {"step": 3})
    assert listed["id"] in bwb("transfer", "list", "--search", "[1/2]").out


def test_a_refusal_says_what_is_in_the_way_and_what_could_be_had(bwb: Bwb, link: str, ends: Ends) -> None:
    first = submit(bwb, ends, "--size", "1G")
    ran = bwb("transfer", "submit", *ends, "--size", "10G", "--deadline", "+20s", code=1)
    assert f"limited by link {link}" in ran.err
    assert first["id"] in ran.err
    assert "without a deadline: done at" in ran.err
    offered = next(line for line in ran.err.splitlines() if "--size" in line).split("--size ")[1].split()[0]
    problem = bwb("transfer", "submit", *ends, "--size", "10G", "--deadline", "+20s", "--json", code=1).json
    assert problem["type"].endswith("/problems/infeasible")
    submit(bwb, ends, "--size", str(int(offered) // 2), "--deadline", "+19s")


def test_the_same_key_gives_the_same_transfer(bwb: Bwb, ends: Ends) -> None:
    words = ("--size", "1M", "--idempotency-key", f"key-{ends[0]}")
    assert submit(bwb, ends, *words)["id"] == submit(bwb, ends, *words)["id"]
    ran = bwb("transfer", "submit", *ends, "--size", "2M", "--idempotency-key", f"key-{ends[0]}", code=1)
    assert "(422)" in ran.err


def test_quotes_book_nothing(bwb: Bwb, link: str, ends: Ends) -> None:
    ran = bwb("transfer", "submit", *ends, "--size", "1G", "--planner", "vbls,fbls", "--quote")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["vbls", "fbls"]
    assert all(step["booked_bps"] == 0 for step in bwb("link", "calendar", link, "--json").json["steps"])
    quotes = bwb("transfer", "submit", *ends, "--size", "9E", "--quote", "--json", code=2)
    assert "is no size" in quotes.err
    bwb("transfer", "submit", *ends, "--size", "10G", "--deadline", "+5s", "--quote", code=1)


def test_requests_from_a_file(bwb: Bwb, ends: Ends, tmp_path: Path) -> None:
    one = {"source": ends[0], "destination": ends[1], "volume_bytes": 1000}
    file = tmp_path / "requests.json"
    file.write_text(json.dumps([one, one | {"source": "nowhere"}]))
    items = bwb("transfer", "submit", "--file", str(file), "--json", code=1).json["items"]
    assert [item["status"] for item in items] == [201, 422]
    ran = bwb("transfer", "submit", "--file", str(file), code=1)
    assert "1: " in ran.err
    assert "2: refused" in ran.err
    assert bwb("transfer", "submit", "--file", "-", "--json", stdin=json.dumps(one)).json["state"] == "RESERVED"
    bwb("transfer", "submit", "--file", "-", stdin="[]", code=2)
    bwb("transfer", "submit", *ends, "--file", str(file), code=2)


def test_the_size_of_a_file(bwb: Bwb, ends: Ends, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 12_345)
    assert submit(bwb, ends, "--size-of", str(file))["volume_bytes"] == 12_345
    bwb("transfer", "submit", *ends, "--size-of", str(file), "--size", "1", code=2)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("A",), "give SOURCE DESTINATION"),
        (("A", "B"), "give --size"),
        (("A", "B", "--size", "0"), "more than 0"),
        (("A", "B", "--size", "10Gb"), "is in bits"),
        (("A", "B", "--size", "1G", "--rate-max", "10MB"), "is no rate"),
        (("A", "B", "--size", "1G", "--deadline", "soon"), "not an RFC 3339 time"),
        (("A", "B", "--size", "1G", "--metadata", "[]"), "must be an object"),
        (("A", "B", "--size", "1G", "--mode", "teleport"), "--mode"),
    ],
)
def test_requests_that_are_not_sent(bwb: Bwb, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in " ".join(bwb("transfer", "submit", *words, code=2).err.replace("│", " ").split())


def test_a_held_booking_is_committed_paused_resumed_and_cancelled(bwb: Bwb, ends: Ends) -> None:
    made = submit(bwb, ends, "--size", "100G", "--hold")
    transfer_id = made["id"]
    assert made["state"] == "HELD"
    assert "held" in bwb("transfer", "show", transfer_id).out
    assert "RESERVED" in bwb("transfer", "commit", transfer_id).out
    assert bwb("transfer", "pause", transfer_id, "--json").json["paused"] is True
    assert "paused" in bwb("transfer", "show", transfer_id).out
    assert bwb("transfer", "resume", transfer_id, "--json").json["paused"] is False
    assert "CANCELED" in bwb("transfer", "cancel", transfer_id).out
    ran = bwb("transfer", "commit", transfer_id, code=1)
    assert "(409)" in ran.err
    shown = bwb("transfer", "show", transfer_id, "--history", "--json").json
    actions = [event["action"] for event in shown["history"]]
    assert actions[0] == "transfer.admitted"
    assert len(actions) == 5
    assert "transfer.admitted" in bwb("transfer", "show", transfer_id, "--history").out


@pytest.mark.parametrize("action", ["show", "watch", "cancel", "pause", "resume", "commit"])
def test_an_unknown_transfer(bwb: Bwb, action: str) -> None:
    assert "there is no transfer" in bwb("transfer", action, "tr_unknown", code=1).err
    assert bwb("transfer", action, "tr_unknown", "--json", code=1).json["status"] == 404


def test_watching_ends_when_the_transfer_does(bwb: Bwb, ends: Ends) -> None:
    transfer_id = submit(bwb, ends, "--size", "1M")["id"]
    bwb("transfer", "cancel", transfer_id)
    ran = bwb("transfer", "watch", transfer_id, code=1)
    assert f"{transfer_id}: CANCELED" in ran.out
    assert "\x1b" not in ran.out
    assert bwb("transfer", "watch", transfer_id, "--json", code=1).json["state"] == "CANCELED"


def test_ctrl_c_ends_the_watching_and_not_the_transfer(bwb: Bwb, ends: Ends, live: Live) -> None:
    command = [sys.executable, "-m", "broker.cli.app", "transfer", "submit", *ends, "--size", "100G", "--watch"]
    environment = live.environment | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "RESERVED" in process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    transfer_id = err.split()[0].rstrip(":")
    assert f"bwb transfer watch {transfer_id}" in err
    assert "Traceback" not in err
    assert bwb("transfer", "show", transfer_id, "--json").json["state"] in ("RESERVED", "ACTIVE")


def test_times_from_now_are_from_now(bwb: Bwb, ends: Ends) -> None:
    begin = datetime.now(UTC)
    made = submit(bwb, ends, "--size", "1M", "--not-before", "+1h", "--deadline", "+1h30m")
    assert abs(datetime.fromisoformat(made["not_before"]) - begin - timedelta(hours=1)) < timedelta(seconds=20)
    assert abs(datetime.fromisoformat(made["deadline"]) - begin - timedelta(minutes=90)) < timedelta(seconds=20)


@pytest.mark.real_time
def test_help_is_fast_enough_to_be_read_and_has_examples(bwb: Bwb) -> None:
    for words in (("transfer", "submit"), ("link", "create"), ("host", "enrol"), ("token", "create")):
        assert "Example" in bwb(*words, "--help").out
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "broker.cli.app", "--help"], capture_output=True, text=True, check=True)
    assert time.monotonic() - begin < 5  # seconds of imports would show, a busy machine must not
    for name in ("audit", "token", "link", "host", "transfer", "demo"):
        assert name in done.stdout


def test_looking_at_transfers_loads_no_compiler() -> None:
    """Half a second, before anything is asked."""
    code = "import sys, broker.cli.transfer.commands; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]
