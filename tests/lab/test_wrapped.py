# SPDX-License-Identifier: Apache-2.0
"""Commands of others at booked rates: real tools, one and eight streams, and what happens when something dies."""

import itertools
import signal
import subprocess
from collections.abc import Iterator

import pytest

from broker.cli.quantities import now_us
from broker.core.units import format_time, parse_time
from broker.lab import why_not
from broker.lab.services import DATA_PORT
from broker.lab.trace import TICK_US, Row, per_tick
from tests.lab.fitness import shown
from tests.lab.wrapping import HTTP_PORT, PACKET, PAYLOAD, Rig, deviation, missing, rig, wait_for

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(
        bool(why_not()),
        reason="NOT SHOWN that real tools keep to booked rates: " + "; ".join(why_not()) + "; run `make test` as root",
    ),
]

MBPS = 1_000_000
RATE = 20 * MBPS
SIZE = 10_000_000  # four seconds


MANY, EACH = 50, 4 * MBPS
GAMMA = MANY * EACH
# What is late waits for a new booking: at the fallback rate it would be on the link beside the others.
FLAGS = ["--fallback-rate", "0"]


@pytest.fixture(scope="module")
def lab() -> Iterator[Rig]:
    with rig(GAMMA, ports=200, flags=FLAGS) as running:
        yield running


def _parallel(one: str, count: int = 8) -> list[str]:
    """A shell that runs `one` with $i = 0, 1, ... at once, and fails if any of them fails."""
    each = f'for i in $(seq 0 {count - 1}); do {one} & all="$all $!"; done'
    return ["sh", "-c", f"{each}; for p in $all; do wait $p || exit 9; done"]


def _uploads(lab: Rig, port: int, count: int) -> list[str]:
    file = lab.file(SIZE // count)
    return _parallel(f"curl -sS -T {file} http://{lab.to}:{port}/x$i", count)


def _rsync(lab: Rig, port: int, count: int) -> list[str]:
    module = lab.files / f"rsync{port}"
    module.mkdir()
    config = lab.files / f"rsyncd{port}.conf"
    config.write_text(f"reverse lookup = no\n[in]\npath = {module}\nread only = no\nuse chroot = no\nuid = root\ngid = root\n")
    lab.lab.host("c").start(
        ["rsync", "--daemon", "--no-detach", f"--port={port}", f"--address={lab.to}", f"--config={config}"],
        stderr=subprocess.DEVNULL,
    )
    file = lab.file(SIZE // count)
    return _parallel(f"rsync --whole-file {file} rsync://{lab.to}:{port}/in/$i", count)


def _rclone(lab: Rig, port: int, count: int) -> list[str]:
    there, here = lab.files / f"webdav{port}", lab.files / f"rclone{port}"
    there.mkdir()
    here.mkdir()
    for number in range(count):
        with (here / str(number)).open("wb") as file:
            file.truncate(SIZE // count)
    served = ["rclone", "serve", "webdav", str(there), "--addr", f"{lab.to}:{port}"]
    lab.lab.host("c").start(served, stderr=subprocess.DEVNULL)
    remote = [f"--webdav-url=http://{lab.to}:{port}", "--webdav-vendor=other", "--config=", f"--transfers={count}"]
    remote += ["--no-traverse", "--no-check-dest"]
    return ["rclone", "copy", str(here), ":webdav:/", "--ignore-checksum", *remote]


def _iperf(lab: Rig, port: int, count: int) -> list[str]:
    lab.lab.host("c").start(["iperf3", "--server", "--one-off", f"--port={port}"], stdout=subprocess.DEVNULL)
    return ["iperf3", f"--client={lab.to}", f"--port={port}", f"--bytes={SIZE}", f"--parallel={count}"]


TOOLS = {"curl": _uploads, "rsync": _rsync, "rclone": _rclone, "iperf3": _iperf}


def test_real_tools_with_one_and_with_eight_streams(lab: Rig) -> None:
    """All at once on one link, each within 2 % of its booking; by pacing, and where it says so by what the agent holds for the command."""
    if lacking := missing(*TOOLS):
        pytest.skip(
            f"NOT SHOWN that {', '.join(lacking)} keep to booked rates: not installed (.ci/setup installs what `make test` needs)"
        )
    numbers = itertools.count(100)  # every attempt has ports and labels of its own
    shown(lambda: _tools(lab, numbers))


def _tools(lab: Rig, numbers: Iterator[int]) -> list[str]:
    """What is off by more than 2 %."""
    running = {}
    wanted: list[tuple[str, int, list[str]]] = [(tool, count, []) for tool in TOOLS for count in (1, 8)]
    wanted += [(f"curl/{name}", count, ["--mechanism", name]) for name, count in (("htb", 8), ("window", 1))]
    for tool, count, more in wanted:
        number = next(numbers)
        port = HTTP_PORT + number if tool.startswith("curl") else 8000 + number
        command = TOOLS[tool.partition("/")[0]](lab, port, count)
        options = ["--bytes", str(SIZE), "--rate-max", "20M", "--label", f"{tool}-{port}", *more]
        running[tool, count] = port, lab.bwb_run(options, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = {}
    for (tool, count), (port, process) in running.items():
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, (tool, count, said)
        assert "starts" in said and "20 Mb/s" in said
        (booked,) = (t for t in lab.broker.transfers(search=f"{tool}-{port}") if t["label"] == f"{tool}-{port}")
        done = lab.ended(booked["id"])
        assert done["state"] == "FINISHED", done
        found[tool, count] = deviation(lab.trace(), done, range(port, port + 1)), done
    for (tool, count), (off, done) in found.items():
        late = (parse_time(done["actual_finish"] or "") - parse_time(done["promised_finish"] or "")) / 1e6
        print(
            f"{tool} x{count}: {off:+.4f}, {done['bytes_done']} bytes, {late:+.3f} s against the promise, {done['waiting_reason']}"
        )
    assert all(done["bytes_done"] >= SIZE for (tool, _), (_, done) in found.items() if tool != "iperf3")
    wrong = [f"{tool} x{count}: {off:+.4f}" for (tool, count), (off, _) in found.items() if abs(off) > 0.02]
    # iperf3 tears its connections down as soon as it has written all that it wants: the less has arrived by then, the busier the machine.
    torn = [done["bytes_done"] for (tool, _), (_, done) in found.items() if tool == "iperf3" and done["bytes_done"] < 0.9 * SIZE]
    return wrong + [f"of {SIZE} bytes of iperf3 {size} were counted" for size in torn]


def test_a_command_that_fails_a_supervisor_that_is_killed_and_a_transfer_that_is_cancelled(lab: Rig) -> None:
    file = lab.file(SIZE)

    def upload(port: int) -> str:
        return f"curl -sS -T {file} http://{lab.to}:{port}/x"

    replica = [lab.book(SIZE, rate_max_bps=RATE, label=name) for name in ("fails", "killed", "cancelled", "interrupted", "missing")]
    failing, killed, cancelled, interrupted, absent = replica
    fails = lab.exec(failing, ["sh", "-c", f"curl -sS -T {lab.file(300_000)} http://{lab.to}:{HTTP_PORT + 20}/x; exit 7"])
    dies = lab.exec(killed, ["sh", "-c", f"{upload(HTTP_PORT + 21)}; true"])
    goes = lab.exec(cancelled, ["sh", "-c", f"trap 'exit 5' TERM; {upload(HTTP_PORT + 22)} & wait"])
    stops = lab.exec(interrupted, ["sh", "-c", upload(HTTP_PORT + 23)])
    no_such = lab.exec(absent, ["no-such-program"], stderr=subprocess.PIPE, text=True)
    try:
        assert fails.wait(120) == 7
        failed = lab.ended(failing["id"])
        assert (failed["state"], failed["waiting_reason"] and failed["waiting_reason"]["code"]) == ("FAILED", "command_failed")
        assert "exit status 7" in str(failed["waiting_reason"]) and 300_000 <= failed["bytes_done"] < 310_000
        wait_for(
            lambda: all(lab.transfer(t["id"])["bytes_done"] > 1_000_000 for t in (killed, cancelled, interrupted)), 60, "they move"
        )
        dies.kill()
        lab.broker.act(cancelled["id"], "cancel")
        stops.send_signal(signal.SIGINT)
        assert goes.wait(120) == 5  # its own answer to TERM
        assert stops.wait(120) == 128 + signal.SIGINT
        assert no_such.communicate(timeout=60)[1].count("no-such-program") == 1 and no_such.returncode == 127
        lost = lab.ended(killed["id"])
        assert (lost["state"], lost["waiting_reason"] and lost["waiting_reason"]["code"]) == ("FAILED", "supervisor_lost")
        assert lab.ended(cancelled["id"])["state"] == "CANCELED"
        assert lab.ended(interrupted["id"])["state"] == lab.ended(absent["id"])["state"] == "FAILED"
        wait_for(lambda: not _sending(HTTP_PORT + 21, lab), 5, "the command of the killed supervisor ends")
    finally:
        for process in (fails, dies, goes, stops, no_such):
            process.kill()


def test_commands_and_files_take_turns(lab: Rig) -> None:
    """A command, a file that an agent moves, another command, one behind the other: each begins on the end of the one before, ahead of its
    booked time, for the first sends a sixth of what it said."""
    small = 5_000_000
    file = lab.lab.agents["a"].out / "between"
    file.write_bytes(bytes(small))
    ports = [HTTP_PORT + 50, DATA_PORT, HTTP_PORT + 51]
    upload = f"curl -sS -T {lab.file(small)} http://{lab.to}:{{}}/x"
    first = lab.book(6 * small, rate_max_bps=RATE, label="first")
    chained = {"rate_max_bps": RATE, "signal": {"kind": "direct", "on_timeout": "cancel", "timeout_s": 5}}
    between = lab.book(small, mode="managed", payload={"path": "between"}, after=first["id"], **chained)
    last = lab.book(small, after=between["id"], label="last", **chained)
    assert between["plan"]["start"] == first["plan"]["finish"]
    runs = [lab.exec(first, ["sh", "-c", upload.format(ports[0])]), lab.exec(last, ["sh", "-c", upload.format(ports[2])])]
    try:
        assert [process.wait(120) for process in runs] == [0, 0]
    finally:
        for process in runs:
            process.kill()
    done = [lab.ended(one["id"]) for one in (first, between, last)]
    assert [one["state"] for one in done] == ["FINISHED"] * 3, [one["waiting_reason"] for one in done]
    for booked, now in zip((between, last), done[1:], strict=True):
        assert "go_received" in lab.signals(booked["id"]), lab.signals(booked["id"])
        assert parse_time(now["actual_start"] or "") < parse_time(booked["plan"]["start"] or "")
    rows = [row for row in lab.trace() if row.time_us > parse_time(first["plan"]["start"] or "") - 1_000_000]
    spans = [_span([row for row in rows if row.destination_port == port]) for port in ports]
    print(f"gaps, ms: {[(after[0] - before[1]) / 1000 for before, after in itertools.pairwise(spans)]}")
    assert all(after[0] >= before[1] - TICK_US for before, after in itertools.pairwise(spans)), spans


def _span(rows: list[Row]) -> tuple[int, int]:
    """From when to when they carried data: more in a tick than acknowledgements, or than what opens a window, need."""
    busy = [time_us for time_us, size in per_tick(rows, "offered") if size > RATE / 8e6 * TICK_US * 0.1]
    return busy[0], busy[-1] + TICK_US


def test_a_successor_of_a_command_that_nobody_runs(lab: Rig) -> None:
    """It begins when the time of that one is over, at the latest."""
    never = lab.book(1_000_000, rate_max_bps=RATE, label="never run")
    next_one = lab.book(1_000_000, rate_max_bps=RATE, label="behind it", after=never["id"], signal={"on_timeout": "cancel"})
    process = lab.exec(next_one, ["sh", "-c", f"curl -sS -T {lab.file(1_000_000)} http://{lab.to}:{HTTP_PORT + 52}/x"])
    assert process.wait(120) == 0
    assert lab.ended(next_one["id"])["state"] == "FINISHED"
    lab.broker.act(never["id"], "cancel")


def _sending(port: int, lab: Rig) -> bool:
    """Has anybody a connection to the port?"""
    return f":{port} " in lab.lab.host("a").run(["ss", "-tnH"]).stdout


def test_fifty_at_once_on_a_link_that_shrinks_for_a_while(lab: Rig) -> None:
    """The sum is never above gamma by more than 1 % over 200 ms, and each is within 2 % of its booking."""

    def play() -> list[str]:
        off, over = _fifty(lab)
        found = f"deviations {min(off):+.4f} to {max(off):+.4f}; most above gamma over 200 ms: {over:+.4f}"
        print(found)
        return [] if max(map(abs, off)) <= 0.02 and over <= 0.01 else [found]

    shown(play)


def _fifty(lab: Rig) -> tuple[list[float], float]:
    """By which share each differs from its booking, and by which the sum is above gamma at most."""
    first = HTTP_PORT + 40
    start = now_us() + 5_000_000  # until then, everybody is ready
    begin, end = start + 4_500_000, start + 6_000_000
    lab.broker.add_window("left-right", {"begin": format_time(begin), "end": format_time(end), "bps": GAMMA // 2})
    size = EACH // 8 * 5
    file = lab.file(size)
    # Fifty programs at the same instant would show the scheduler of this machine: one every 61.337 ms, which is no multiple of anything.
    begins = [format_time(start + 61_337 * number) for number in range(MANY)]
    replica = [lab.book(size, rate_max_bps=EACH, not_before=at) for at in begins]
    running = [
        lab.exec(booked, ["curl", "-sS", "-T", str(file), f"http://{lab.to}:{first + number}/x"], stderr=subprocess.DEVNULL)
        for number, booked in enumerate(replica)
    ]
    assert [process.wait(120) for process in running] == [0] * MANY
    done = [lab.ended(booked["id"]) for booked in replica]
    rows = [row for row in lab.trace() if row.time_us > start]
    assert {t["state"] for t in done} == {"FINISHED"}
    off = [deviation(rows, t, range(first + n, first + n + 1)) for n, t in enumerate(done)]
    return off, max(share for _, share in _over(rows, begin, end))


def _over(rows: list[Row], begin_us: int, end_us: int, width_us: int = 200_000) -> Iterator[tuple[int, float]]:
    """(begin, share above gamma) of every window of 200 ms. gamma is halved in [begin, end).

    What the emulator read late had been sent before: a window may hold what gamma allows since the oldest packet that it read in it can have come.
    """
    ticks = per_tick(rows, "offered")
    count = width_us // TICK_US
    unread: dict[int, int] = {}
    for row in rows:
        unread[row.time_us] = max(unread.get(row.time_us, 0), row.unread_max_us)
    for at in range(len(ticks) - count + 1):
        first = ticks[at][0]
        oldest = min(time_us - unread.get(time_us, 0) for time_us, _ in ticks[at : at + count])
        since, until = min(first, oldest), first + width_us
        narrow = max(0, min(end_us, until) - max(begin_us, since))
        allowed = (GAMMA * (until - since) - GAMMA // 2 * narrow) / 8e6
        sent = sum(size for _, size in ticks[at : at + count]) * PAYLOAD / PACKET
        yield first, sent / allowed - 1


def test_a_daemon_that_is_killed_in_the_middle(lab: Rig) -> None:
    """The command goes on at its rate, and what it did is reported once by the next daemon."""
    ports = itertools.count(HTTP_PORT + 30)
    shown(lambda: _killed_daemon(lab, next(ports)))


def _killed_daemon(lab: Rig, port: int) -> list[str]:
    booked = lab.book(SIZE, rate_max_bps=RATE)
    process = lab.exec(booked, ["curl", "-sS", "-T", str(lab.file(SIZE)), f"http://{lab.to}:{port}/x"])
    wait_for(lambda: lab.transfer(booked["id"])["bytes_done"] > 1_000_000, 60, "it moves")
    lab.lab.agents["a"].process.kill()
    before = len([row for row in lab.trace() if row.destination_port == port])
    wait_for(lambda: len([row for row in lab.trace() if row.destination_port == port]) > before + 50, 60, "it goes on alone")
    lab.lab.start_agent("a", FLAGS)
    assert process.wait(120) == 0
    done = lab.ended(booked["id"])
    assert (done["state"], done["bytes_done"] >= SIZE) == ("FINISHED", True)
    assert lab.history(booked["id"]).count("transfer.finished") == 1
    off = deviation(lab.trace(), done, range(port, port + 1))
    return [] if abs(off) <= 0.02 else [f"{off:+.4f}"]
