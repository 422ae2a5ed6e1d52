# SPDX-License-Identifier: Apache-2.0
"""The laboratory does what it says: capacity, delay, buffer and cuts as asked, and nothing is left of it."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from broker.lab import Bottleneck, Host, Lab, LabError, iproute, registry, sweep, sweeping, trace
from tests.lab import needs
from tests.lab.fitness import shown

pytestmark = [pytest.mark.real_time, needs.laboratory("iperf3", "ping")]

CAPACITY = 200_000_000
DELAY_US = 5_000
PACKET = 1500


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """RTT 10 ms, and a buffer of one bandwidth-delay product."""
    with Lab(["a", "b"], ["c"], Bottleneck(capacity_bps=CAPACITY, delay_us=DELAY_US, buffer_bytes=CAPACITY // 800)) as running:
        yield running


@pytest.fixture
def restored(lab: Lab) -> Iterator[Lab]:
    """For a test that changes the bottleneck."""
    yield lab
    lab.gateway.restore()
    lab.gateway.drop(0)
    lab.gateway.set(capacity_bps=CAPACITY, delay_us=DELAY_US, buffer_bytes=CAPACITY // 800, loss=0)


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)
    return value


def listens(host: Host, port: int) -> bool:
    """By the kernel's own list: a connection would use up a server that serves one."""
    found: str = host.run(["ss", "-Hltun", f"sport = :{port}"]).stdout
    return bool(found.strip())


def rtts_ms(lab: Lab, source: str, target: str, count: int = 5) -> list[float]:
    answers = lab.host(source).run(["ping", "-n", "-c", str(count), "-i", "0.02", "-W", "0.3", lab.host(target).address]).stdout
    return [float(line.split("time=")[1].split()[0]) for line in answers.splitlines() if "time=" in line]


def test_cubic_fills_the_link_and_never_exceeds_it(lab: Lab) -> None:
    source, sink = lab.host("a"), lab.host("c")

    def play() -> list[str]:
        sink.start(["iperf3", "--server", "--one-off"], stdout=subprocess.DEVNULL)
        until(lambda: listens(sink, 5201))
        # The first second is the discovery of the rate (slow start), which is not what this is about.
        report = json.loads(source.run(["iperf3", "--client", sink.address, "--time", "3", "--omit", "1", "--json"]).stdout)
        assert "cubic" in report["end"]["sender_tcp_congestion"]
        sent = report["end"]["sum_received"]["bits_per_second"]
        late = lab.gateway.statistics()["directions"]["left-right"]["lateness_us"]
        return (
            [] if sent >= 0.9 * lab.bottleneck.payload_bps else [f"{sent / 1e6:.0f} Mb/s went through; packets were late by {late}"]
        )

    shown(play)

    time.sleep(0.3)  # the trace lags
    rows = [row for row in trace.read(lab.gateway.trace) if row.direction == "left-right" and row.protocol == "tcp"]
    assert {(row.source, row.destination) for row in rows} == {(source.address, sink.address)}
    for width_us in (10_000, 200_000):
        most = trace.peak_bps(rows, "forwarded", width_us)
        assert 0.9 * CAPACITY < most <= CAPACITY + PACKET * 8_000_000 // width_us
    assert trace.peak_bps(rows, "offered", 10_000) > CAPACITY  # CUBIC does not know: that is what the buffer is for
    assert max(row.queue_max for row in rows) <= CAPACITY // 800
    totals = [sum(getattr(row, column) for row in rows) for column in ("offered", "forwarded", "dropped")]
    assert totals[0] == totals[1] + totals[2]


def test_round_trips(restored: Lab) -> None:
    across, beside = rtts_ms(restored, "a", "c"), rtts_ms(restored, "a", "b")
    assert len(across) == 5
    assert 10.0 <= min(across) < 11.0
    assert min(beside) < 1.0  # hosts of one side see each other directly
    restored.gateway.set(delay_us=25_000, direction="right-left")
    assert 30.0 <= min(rtts_ms(restored, "a", "c")) < 31.5


def test_the_buffer_drops_its_tail(restored: Lab) -> None:
    """A burst into a slow link: one packet is sent, ten wait, the others are lost."""
    restored.gateway.set(capacity_bps=1_000_000, buffer_bytes=10 * PACKET)
    before = restored.gateway.statistics()["directions"]["left-right"]
    send_datagrams(restored.host("a"), restored.host("c"), 50)

    def counted() -> Any:
        now = restored.gateway.statistics()["directions"]["left-right"]
        return now if now["offered"]["packets"] >= before["offered"]["packets"] + 50 else None

    now = until(counted)
    taken = 50 - (now["dropped"]["overflow"]["packets"] - before["dropped"]["overflow"]["packets"])
    assert 11 <= taken <= 13  # 12 ms for each packet on the link: the burst itself takes some
    assert now["queue_bytes"] <= 10 * PACKET


def test_cut_and_restored(restored: Lab) -> None:
    restored.gateway.cut("right-left")
    assert rtts_or_none(restored) == []
    assert restored.gateway.statistics()["directions"]["right-left"]["dropped"]["cut"]["packets"] >= 1
    restored.gateway.restore()
    assert len(rtts_ms(restored, "a", "c", 1)) == 1


def rtts_or_none(lab: Lab) -> list[float]:
    try:
        return rtts_ms(lab, "a", "c", 1)
    except subprocess.CalledProcessError:
        return []


def test_ordered_losses_hit_what_was_named(restored: Lab) -> None:
    """Three datagrams are lost, TCP and the control network are not."""
    restored.gateway.drop(3, "udp", 7777, "left-right")
    receiver = restored.host("c").start([sys.executable, "-c", RECEIVE, "2"], stdout=subprocess.PIPE, text=True)
    until(lambda: listens(restored.host("c"), 7777))
    send_datagrams(restored.host("a"), restored.host("c"), 5)
    assert receiver.communicate(timeout=10)[0].split() == ["3", "4"]
    assert restored.gateway.statistics()["directions"]["left-right"]["dropped"]["ordered"]["packets"] == 3


def test_random_losses(restored: Lab) -> None:
    restored.gateway.set(loss=1.0, direction="left-right")
    assert rtts_or_none(restored) == []
    assert restored.gateway.statistics()["directions"]["left-right"]["loss"] == 1.0


SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for number in range(int(sys.argv[2])):
        sender.sendto(str(number).encode().ljust(1472), (sys.argv[1], 7777))
"""
RECEIVE = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("", 7777))
    for _ in range(int(sys.argv[1])):
        print(receiver.recv(2000).decode().strip())
"""


def send_datagrams(source: Host, target: Host, count: int) -> None:
    """Numbered ones, as large as the MTU allows."""
    source.run([sys.executable, "-c", SEND, target.address, str(count)])


def test_the_control_network_does_not_cross_the_bottleneck(restored: Lab) -> None:
    restored.gateway.cut()
    with socket.create_server((restored.control_address, 0)) as server:
        url = restored.control_url(server.getsockname()[1])
        for host in ("a", "c"):
            client = restored.host(host).start(["curl", "--silent", "--max-time", "5", url], stderr=subprocess.DEVNULL)
            server.settimeout(5)
            connection, peer = server.accept()
            connection.close()
            assert peer[0] == restored.host(host).control_address
            client.wait(120)


def test_mistakes_are_explained(lab: Lab) -> None:
    with pytest.raises(LabError, match="capacity is 0 bit/s"):
        lab.gateway.set(capacity_bps=0)
    with pytest.raises(LabError, match="loss is 2"):
        lab.gateway.set(loss=2)
    with pytest.raises(LabError, match="there are a, b, c"):
        lab.host("z")
    with pytest.raises(LabError, match="no name for a host"):
        Lab(["a/b"], ["c"])
    with pytest.raises(LabError, match="name of its own"):
        Lab(["a"], ["a"])
    with pytest.raises(LabError, match=r"rmem_max.*is refused"), Lab(["a"], ["c"], sysctls={"net.core.rmem_max": "1"}):
        pass
    assert left_of(f"bwblab-{os.getpid()}-1") == []


# -- nothing stays -----------------------------------------------------------------------------------------------------------------------


def left_of(name: str) -> list[str]:
    """Namespaces, device and record of a laboratory."""
    spaces = [space for space in iproute.namespaces() if space.startswith(f"{name}-")]
    device = registry.device_of(name)
    devices = [device] if device in iproute.run(["ip", "-brief", "link"]) else []
    return spaces + devices + [found for found, _ in registry.records() if found == name]


CHILD = """
import sys, time
from broker.lab import Lab
with Lab(["a"], ["c"]) as lab:
    sleeper = lab.host("a").start(["sleep", "1000"])
    print(lab.gateway.socket.parent.name, sleeper.pid, lab.gateway.process.pid, lab.directory, flush=True)
    time.sleep(1000)
"""


def start_child() -> tuple["subprocess.Popen[str]", str, list[int], str]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    _, sleeper, gateway, directory = child.stdout.readline().split()
    return child, f"bwblab-{child.pid}-0", [int(sleeper), int(gateway)], directory


def test_two_at_a_time_and_nothing_stays(lab: Lab) -> None:
    """Ended by SIGTERM, and by kill -9 with a sweep; the other laboratory goes on all the while."""
    for number, swept in ((15, []), (9, None)):
        child, name, pids, directory = start_child()
        assert len(left_of(name)) == 6  # two routers, two hosts, a device, a record
        child.send_signal(number)
        assert child.wait(120) == (128 + 15 if number == 15 else -9)
        if swept is None:
            assert len(left_of(name)) == 6
            assert name in sweep()
        assert left_of(name) == []
        for pid in pids:
            assert not psutil.pid_exists(pid)
        assert not Path(directory).exists()
        assert name not in sweeping.sweep()
    assert len(rtts_ms(lab, "a", "c", 1)) == 1


def test_an_exception_takes_it_down() -> None:
    with pytest.raises(ZeroDivisionError), Lab(["a"], ["c"]) as running:
        name, directory, sleeper = running.gateway.socket.parent, running.directory, running.host("a").start(["sleep", "1000"])
        raise ZeroDivisionError
    assert not name.exists()
    assert not directory.exists()
    assert sleeper.poll() is not None
    assert running.gateway.process.poll() is not None
