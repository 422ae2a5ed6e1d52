# SPDX-License-Identifier: Apache-2.0
"""Fills a broker with what an operator of ESnet might see: 80 routers, 16 transfer hosts, 500 transfers, windows, a few refusals.

    python -m tests.dashboard.seed STATE_DIR [SEED]        # of a running `bwb up`

Through the API alone, in batches. Everything is drawn from the seed, which is printed; only ids and times differ from run to run.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from broker.core.units import US_PER_S, format_time
from tests.dashboard import places

SEED = 5
TRANSFERS = 500
NETWORK = Path(__file__).parents[1] / "data" / "esnet-network.json"

GIGA, TERA = 10**9, 10**12

# host, its router, NIC in Gbit/s
HOSTS = (
    ("dtn01.nersc", "lbnl59-cr6", 100), ("dtn02.nersc", "lbnl59-cr6", 100), ("dtn01.olcf", "ornl5600-cr6", 100), ("dtn02.olcf", "ornl5600-cr6", 100),
    ("dtn01.alcf", "anl221-cr6", 100), ("dtn02.alcf", "anl221-cr6", 100), ("dtn01.slac", "slac50n-cr6", 100), ("dtn02.slac", "slac50s-cr6", 40),
    ("dtn01.bnl", "bnl515-cr6", 100), ("dtn02.bnl", "bnl725-cr6", 100), ("dtn01.fnal", "fnalfcc-cr6", 100), ("dtn02.fnal", "fnalgcc-cr6", 40),
    ("dtn01.cern", "cern513-cr6", 100), ("dtn01.pnnl", "pnnlemsl-cr6", 40), ("dtn01.jlab", "jlab12-cr6", 40), ("dtn01.pppl", "pppl-cr6", 10),
)  # fmt: skip

# project, the routers that send, the routers that receive, what a transfer of it is called
PROJECTS = (
    ("atlas", "cern513 cern773", "bnl515 bnl725 slac50n", "ATLAS data25_13p6TeV run {n} AOD"),
    ("cms", "cern513 cern773", "fnalfcc fnalgcc", "CMS Run2025{letter} RAW block {n}"),
    ("dune", "fnalfcc", "cern513 bnl515 lbnl59", "ProtoDUNE-HD raw {n}"),
    ("lcls", "slac50n slac50s", "lbnl59 lbnl50 ornl5600", "LCLS-II mfx{n} detector frames"),
    ("climate", "ornl5600 llnl", "anl221 lbnl59 pnnlemsl", "E3SM v3 ensemble member {n}"),
    ("fusion", "ga pppl", "lbnl59 ornl5600 anl221", "DIII-D shot {n}"),
    ("genomics", "lbnl59", "ornl1064 pnnlemsl anl541b", "JGI assembly {n}"),
    ("lqcd", "jlab12 jlab205", "ornl5600 fnalfcc lbnl59", "LQCD ensemble a{n} propagators"),
    ("cosmology", "anl221", "lbnl59 ornl5600 slac50n", "HACC snapshot z={n}"),
    ("archive", "lanlta03 snlnm inleil", "lbnl50 ornl1064", "Archive mirror {n}"),
)  # fmt: skip

WINDOWS = (
    ("chic-cr6--star-cr6", "maintenance", "Line card exchange, ticket ESNET-20418"),
    ("denv-cr6--kans-cr6", "maintenance", "Fibre splice between Denver and Kansas City"),
    ("sacr-cr6--sunn-cr6", "maintenance", "Router software upgrade at Sunnyvale"),
    ("eqxam3-cr6--cern513-cr6", "background", "Best-effort traffic of the LHC experiments"),
    ("atla-cr6--nash-cr6", "outage", "Optical amplifier failed near Chattanooga"),
)


@dataclass(frozen=True)
class Seeded:
    """What a test may rely on."""

    links: list[str]
    hosts: dict[str, str]  # name: its agent's token
    transfers: list[dict[str, Any]]  # as the API answered them
    refused: int
    windows: list[str]  # links that have one

    def carrying(self) -> str:
        """The link that most of the transfers use."""
        uses: dict[str, int] = {}
        for transfer in self.transfers:
            for link in {link for path in transfer["plan"]["paths"] for link in path}:
                uses[link] = uses.get(link, 0) + 1
        return max((link for link in self.links if link in uses), key=lambda link: (uses[link], link))


def fill(client: httpx.Client, seed: int = SEED, transfers: int = TRANSFERS) -> Seeded:
    """`client` has the broker's URL and a token that may operate."""
    print(f"seed of the network's load: {seed}")
    draw = random.Random(seed)
    links = _network(client)
    hosts = {host: _enrol(client, host, router, gigabits) for host, router, gigabits in HOSTS}
    made, refused = _book(client, list(_requests(draw, transfers)))
    _report(client, hosts, made, draw)
    windows = _windows(client, set(links), draw)
    _cancel_some(client, made, draw)
    return Seeded(links, hosts, made, refused, windows)


def _ask(client: httpx.Client, method: str, path: str, body: Any, **options: Any) -> Any:
    answer = client.request(method, path, json=body, **options)
    if not answer.is_success:
        raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:2000]}")
    return answer.json()


def _network(client: httpx.Client) -> list[str]:
    links = json.loads(NETWORK.read_text())["links"]
    _ask(client, "PUT", "/v1/topology", {"links": links, "nodes": places.nodes()})
    return [link["id"] for link in links]


def _enrol(client: httpx.Client, host: str, router: str, gigabits: int) -> str:
    """As an agent does, which then says how it is."""
    body = {"host": host, "node": router, "nic_bps": gigabits * GIGA}
    secret = _ask(client, "POST", "/v1/hosts/enrolment-tokens", body)["token"]
    old = host in ("dtn02.fnal", "dtn01.pppl")
    about = {
        "data_address": f"{host}.example.org:7411",
        "agent_version": "0.0.9" if old else "0.1.0",
        "capabilities": {
            "mechanisms": ["userland"] if old else ["pacing", "htb", "userland"],
            "mechanism": "userland" if old else "pacing",
            "observe": [{"address": "peer", "destination_ports": "1024-65535"}],
        },
    }
    token: str = _ask(client, "POST", "/v1/agents/enrol", {"token": secret, **about})["agent_token"]
    clock = {"offset_us": 120 if not old else 48_000, "error_us": 450, "adjtimex_error_us": 300, "synchronised": not old}
    _ask(
        client, "POST", f"/v1/agents/{host}/reports", {"clock": clock, "reports": []}, headers={"Authorization": f"Bearer {token}"}
    )
    return token


def _requests(draw: random.Random, number: int) -> Iterator[dict[str, Any]]:
    now_us = time.time_ns() // 1000
    for n in range(number):
        project, sources, targets, label = draw.choice(PROJECTS)
        letter = draw.choice("CDEFG")
        asked: dict[str, Any] = {
            "source": f"{draw.choice(sources.split())}-cr6",
            "destination": f"{draw.choice(targets.split())}-cr6",
            "project": project,
            "label": label.format(n=draw.randrange(1000, 10_000), letter=letter),
            "priority": draw.choice((0, 0, 0, 0, 5, 10, -5)),
            "planner": draw.choice(("vbls", "vbls", "vbls", "fbls")),
            "metadata": {"workflow": f"{project}-{draw.randrange(10**4):04d}", "files": draw.randrange(10, 9000)},
        }
        begin_s = draw.choice((0, 0, draw.uniform(0, 3600), draw.uniform(0, 24 * 3600), draw.uniform(0, 72 * 3600)))
        if n % 8 == 0:  # ends while one looks
            asked |= {"volume_bytes": draw.randrange(20, 200) * GIGA // 10, "rate_max_bps": 10 * GIGA}
            begin_s = 0
        elif n % 8 == 1 and (pair := _hosts_at(draw)):
            asked |= {"source": pair[0], "destination": pair[1], "mode": "managed", "payload": {"path": f"{project}/{n:04d}.tar"}}
            asked |= {"volume_bytes": draw.randrange(2, 40) * TERA, "rate_max_bps": draw.choice((4, 8, 10)) * GIGA}
            begin_s = draw.choice((0, 0, begin_s))
        else:
            asked |= {"volume_bytes": draw.randrange(1, 60) * TERA, "rate_max_bps": draw.choice((10, 20, 40, 80)) * GIGA}
        needs_s = asked["volume_bytes"] * 8 / asked["rate_max_bps"]
        asked["not_before"] = format_time(now_us + int(begin_s * US_PER_S))
        if draw.random() < 0.6:
            asked["deadline"] = format_time(now_us + int((begin_s + 60 + needs_s * draw.uniform(1.05, 4)) * US_PER_S))
        if n % 40 == 39:  # wants more than its time allows
            asked["deadline"] = format_time(now_us + int((begin_s + 1 + needs_s / 3) * US_PER_S))
        if n % 50 == 7:
            asked["hold"] = True
        yield asked


def _hosts_at(draw: random.Random) -> tuple[str, str]:
    source, destination = draw.sample([host for host, _, _ in HOSTS], 2)
    return source, destination


def _book(client: httpx.Client, requests: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    items = _ask(client, "POST", "/v1/transfers/batch", requests)["items"]
    made = [item["transfer"] for item in items if item["status"] == 201]
    return made, len(items) - len(made)


def _report(client: httpx.Client, hosts: dict[str, str], made: list[dict[str, Any]], draw: random.Random) -> None:
    """What agents say of the first managed transfers: most of them keep up, some are slow."""
    now_us = time.time_ns() // 1000
    managed = [transfer for transfer in made if transfer["mode"] == "managed" and transfer["state"] == "RESERVED"]
    begun = [transfer for transfer in managed if transfer["plan"]["segments"][0]["begin"] <= format_time(now_us + 5 * US_PER_S)]
    for transfer in begun:
        planned_bps = transfer["plan"]["segments"][0]["rate_bps"]
        rate_bps = int(planned_bps * draw.choice((0.98, 0.99, 1.0, 1.0, 0.55)))
        common = {"transfer_id": transfer["id"], "at": format_time(now_us)}
        reports = [
            {**common, "sequence": 1, "kind": "started", "bytes": 0, "rate_bps": 0, "applied_rate_bps": planned_bps},
            {
                **common,
                "sequence": 2,
                "kind": "progress",
                "bytes": rate_bps // 8,
                "rate_bps": rate_bps,
                "applied_rate_bps": planned_bps,
            },
        ]
        authorization = {"Authorization": f"Bearer {hosts[transfer['source']]}"}
        _ask(client, "POST", f"/v1/agents/{transfer['source']}/reports", {"reports": reports}, headers=authorization)


def _windows(client: httpx.Client, links: set[str], draw: random.Random) -> list[str]:
    now_us = time.time_ns() // 1000
    found = []
    for link, kind, reason in WINDOWS:
        if link not in links:
            continue
        begin_us = now_us + int(draw.uniform(0.5, 20) * 3600) * US_PER_S
        window = {
            "begin": format_time(begin_us),
            "end": format_time(begin_us + draw.randrange(1, 5) * 3600 * US_PER_S),
            "bps": 0 if kind == "outage" else 20 * GIGA,
            "kind": kind,
            "reason": reason,
            "on_broken": "replan",
        }
        _ask(client, "POST", f"/v1/links/{link}/windows", window)
        found.append(link)
    return found


def _cancel_some(client: httpx.Client, made: list[dict[str, Any]], draw: random.Random) -> None:
    waiting = [transfer for transfer in made if transfer["state"] == "RESERVED" and transfer["mode"] == "reserve"]
    for transfer in draw.sample(waiting, 8):
        client.post(f"/v1/transfers/{transfer['id']}/cancel")  # one that has ended meanwhile refuses


def main() -> None:
    state = Path(sys.argv[1])
    url = json.loads((state / "bwb.json").read_text())["url"]
    token = (state / "admin.token").read_text().strip()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        begin = time.perf_counter()
        seeded = fill(client, int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
    print(
        f"{len(seeded.transfers)} transfers booked and {seeded.refused} refused on {len(seeded.links)} links, "
        f"{len(seeded.hosts)} hosts, windows on {', '.join(seeded.windows)}, in {time.perf_counter() - begin:.1f} s"
    )


if __name__ == "__main__":
    main()
