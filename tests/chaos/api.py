# SPDX-License-Identifier: Apache-2.0
"""An API process that is killed and started."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress

import httpx

from tests.ports import free_port
from tests.service import SECRET


class Api:
    """An API process under uvicorn, as `bwb serve` runs it."""

    def __init__(self, database_url: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = os.environ | {"BWB_DATABASE_URL": database_url, "BWB_SECRET_KEY": SECRET, "BWB_REDIS_URL": ""}
        self.start()

    def start(self) -> None:
        arguments = [
            "--factory",
            "broker.main:create_app",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--log-level",
            "critical",
        ]
        command = [sys.executable, "-m", "uvicorn", *arguments]
        self.process = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def ready(self) -> None:
        async with httpx.AsyncClient() as client, asyncio.timeout(60):
            while True:
                with suppress(httpx.TransportError):
                    if (await client.get(self.url + "/readyz", timeout=5)).status_code == 200:
                        return
                await asyncio.sleep(0.05)
