# SPDX-License-Identifier: Apache-2.0
"""/v1/agents/download and install.sh: what a host needs before it has a token. Public: there is no secret in any of it."""

import asyncio
import re
from pathlib import Path
from typing import Annotated, Any

from fastapi import Header, Request, Response
from fastapi.responses import FileResponse

from broker.api.context import BrokerDependency
from broker.api.contract.parts import BINARY, NOT_MODIFIED, OPEN, TAGGED, TEXT
from broker.api.routing import make_router
from broker.desk.ground.problems import Problem
from broker.fleet.agent_files import PLATFORMS, AgentFile, AgentFiles

router = make_router("agents", "/v1/agents")

_PARTS = Path(__file__).parents[1] / "install"
# What may stand in the script as the broker's address; it came in a header of the request.
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(/[A-Za-z0-9._~/-]*)?")

_BINARY: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/octet-stream": BINARY},
        "headers": TAGGED["headers"] | {"X-Checksum-Sha256": {"schema": {"type": "string"}, "description": "of the file, in hex"}},
    },
    304: NOT_MODIFIED,
}
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": TEXT}}}


@router.get(
    "/download/{platform}.sha256",
    operation_id="downloadAgentChecksum",
    response_class=Response,
    responses=_TEXT,
    openapi_extra=OPEN,
)
async def checksum(platform: str, broker: BrokerDependency) -> Response:
    """The SHA-256 of an agent, as `sha256sum --check` reads it."""
    found = await _found(broker.agent_files, platform)
    return Response(f"{found.sha256}  bwb-agent-{platform}\n", media_type="text/plain")


@router.get("/download/{platform}", operation_id="downloadAgent", response_class=Response, responses=_BINARY, openapi_extra=OPEN)
async def download(
    platform: str, broker: BrokerDependency, if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None
) -> Response:
    """The agent for a platform: linux-amd64, linux-arm64."""
    found = await _found(broker.agent_files, platform)
    headers = {"ETag": f'"{found.sha256}"', "X-Checksum-Sha256": found.sha256}
    if if_none_match is not None and found.sha256 in if_none_match:
        return Response(status_code=304, headers=headers)
    return FileResponse(found.path, headers=headers, media_type="application/octet-stream", filename=f"bwb-agent-{platform}")


@router.get("/install.sh", operation_id="downloadInstallScript", response_class=Response, responses=_TEXT, openapi_extra=OPEN)
async def install_script(request: Request, broker: BrokerDependency) -> Response:
    """Installs the agent on the host that runs it, as root, and enrols the host with the token in BWB_ENROLMENT_TOKEN."""
    url = broker.settings.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"
    if not _PLAIN_URL.fullmatch(url):
        raise Problem("malformed", "the Host header of this request is no address that a script could use")
    return Response(_script(url), media_type="text/plain")


async def _found(files: AgentFiles, platform: str) -> AgentFile:
    found = await asyncio.to_thread(files.find, platform)
    if found is not None:
        return found
    if platform not in PLATFORMS:
        raise Problem("not-found", f"there is no agent for {platform[:32]!r}, only for {' and '.join(PLATFORMS)}")
    advice = "`make packages` builds them; BWB_AGENT_FILES names the folder with bwb-agent-linux-amd64 and bwb-agent-linux-arm64"
    raise Problem("not-found", f"this broker has no agent for {platform}: {advice}")


def _script(url: str) -> str:
    """The parts put together. A unit or a configuration in a here-document cannot end it: neither has that line."""
    script = (_PARTS / "install.sh").read_text()
    for mark, text in (
        ("@BROKER@", url),
        ("@UNIT@", (_PARTS / "bwb-agent.service").read_text().rstrip()),
        ("@CONFIG@", (_PARTS / "bwb-agent.toml").read_text().rstrip()),
    ):
        script = script.replace(mark, text)
    return script
