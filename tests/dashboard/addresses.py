# SPDX-License-Identifier: Apache-2.0
"""Every page that there is, by name: for what must hold on all of them, and for pictures. tests/dashboard/test_accessibility.py fails
where a route of the dashboard is missing here."""

import re
from pathlib import Path
from urllib.parse import quote, urlsplit

from tests.dashboard.running import RunningBroker

ROUTES = Path(__file__).parents[2] / "broker" / "dashboard" / "src" / "routes.ts"


def of(broker: RunningBroker) -> dict[str, str]:
    """name -> an address with something to see."""
    link = broker.seeded.carrying()
    transfer = next(one for one in broker.seeded.transfers if one["state"] == "RESERVED" and one["deadline"])
    plan = broker.ask("POST", "/v1/plans", {"project": "dune", "time_limit_s": 5})
    return {
        "overview": "/",
        "links": "/links",
        "link": f"/links/{quote(link, safe='')}",
        "transfers": "/transfers",
        "transfer": f"/transfers/{transfer['id']}",
        "schedule": "/schedule",
        "hosts": "/hosts",
        "host": f"/hosts/{next(iter(broker.seeded.hosts))}",
        "request": "/request",
        "jobs": "/jobs",
        "job": f"/jobs/plan/{plan['id']}",
        "access": "/access",
        "audit": "/audit",
        "signin": "/signin",
    }


def patterns() -> list[str]:
    """Of the routes, as the page has them."""
    return re.findall(r'pattern: "([^"]+)"', ROUTES.read_text())


def matches(pattern: str, address: str) -> bool:
    parts, given = pattern.split("/"), urlsplit(address).path.split("/")
    return len(parts) == len(given) and all(part.startswith(":") or part == one for part, one in zip(parts, given, strict=True))
