# SPDX-License-Identifier: Apache-2.0
"""A whole broker with the built dashboard, filled: for tests, for pictures and for figures."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import BrowserContext

from broker.api.dashboard import FOLDER
from tests.dashboard import seed
from tests.embedded.running import Up

ROOT = Path(__file__).parents[2]
_START_S = 120  # for a machine that has much else to do


@dataclass(frozen=True)
class RunningBroker:
    """`up` is the process, to be stopped and started; `client` may everything; `seeded` names what the network holds."""

    up: Up
    url: str
    token: str
    client: httpx.Client
    seeded: seed.Seeded

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The answer's JSON; a refusal fails the test."""
        answer = self.client.request(method, path, json=body, **options)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def make_token(self, *scopes: str, name: str = "browser test", expires: str | None = None) -> dict[str, Any]:
        made: dict[str, Any] = self.ask("POST", "/v1/tokens", {"name": name, "scopes": list(scopes), "expires": expires})
        return made


def bundle() -> Path:
    """The built dashboard: BWB_DASHBOARD_FILES, else what `make dashboard` makes."""
    given = os.environ.get("BWB_DASHBOARD_FILES")
    folder = Path(given) if given else FOLDER
    if not (folder / "index.html").is_file():
        subprocess.run(["make", "dashboard"], cwd=ROOT, check=True)
    return folder


@contextmanager
def running(state_dir: Path, fill: Callable[[httpx.Client], seed.Seeded] = seed.fill) -> Iterator[RunningBroker]:
    # Nobody reports for the seeded hosts after they are made, and none shall go down while one looks.
    up = Up(state_dir, {"BWB_DASHBOARD_FILES": str(bundle()), "BWB_AGENT_LOST_S": "86400", "BWB_LOST_AFTER_S": "86400"})
    try:
        up.start().ready(_START_S)
        url, token = up.info()["url"], (state_dir / "admin.token").read_text().strip()
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            yield RunningBroker(up, url, token, client, fill(client))
    finally:
        up.clear()


def sign_in(context: BrowserContext, token: str) -> None:
    """As the form does, without the form."""
    answer = context.request.post("/v1/session", data={"token": token})
    assert answer.status == 201, answer.text()
