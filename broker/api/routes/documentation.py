# SPDX-License-Identifier: Apache-2.0
"""/docs: the contract to read and to try, by Swagger UI. Its files come with the dashboard, so a reader's browser contacts no other host."""

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from broker.api.compression import accepts_gzip
from broker.api.contract.document import describe
from broker.api.headers import CONTENT_SECURITY_POLICY

router = APIRouter(include_in_schema=False)

# Swagger UI writes style attributes into its page; scripts are still restricted to our own.
_POLICY = CONTENT_SECURITY_POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Bandwidth broker: the API</title>
<link rel="stylesheet" href="/swagger/swagger-ui.css">
<link rel="icon" href="/icon.svg" type="image/svg+xml">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/swagger/swagger-ui-bundle.js"></script>
<script src="/swagger/start.js"></script>
</body>
</html>
"""


@router.get("/docs", response_class=HTMLResponse)
async def documentation() -> HTMLResponse:
    """The page that shows the contract."""
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})


@router.get("/openapi.json")
async def contract(request: Request) -> Response:
    """Generated once for each process, in a child process: it takes half a second, any client may request it, and a thread would share the
    interpreter with everybody else's requests.
    """
    state = request.app.state
    if getattr(state, "contract", None) is None:
        state.contract = asyncio.ensure_future(_written(request.app))
    plain, packed = await asyncio.shield(state.contract)
    said, headers = (packed, {"Content-Encoding": "gzip"}) if accepts_gzip(request.scope) else (plain, {})
    headers |= {"Content-Length": str(len(said)), "Vary": "Accept-Encoding"}
    return StreamingResponse(_pieces(said), media_type="application/json", headers=headers)


# A client that does not read gets no more than its connection buffers, and its next request waits.
_PIECE = 32 * 1024


async def _pieces(whole: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(whole), _PIECE):
        yield whole[begin : begin + _PIECE]


_WRITE = """
import sys
import orjson
from broker.api.contract.document import describe
from broker.main import create_app
sys.stdout.buffer.write(orjson.dumps(describe(create_app())))
"""


async def _written(app: FastAPI) -> tuple[bytes, bytes]:
    """The contract as JSON, plain and compressed."""
    plain = await _described(app)
    return plain, await asyncio.to_thread(gzip.compress, plain, mtime=0)


async def _described(app: FastAPI) -> bytes:
    pipe = asyncio.subprocess.PIPE
    with suppress(OSError):  # no process to be had: slower for everybody, but an answer
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", _WRITE, stdin=asyncio.subprocess.DEVNULL, stdout=pipe)
        said, _ = await child.communicate()
        if child.returncode == 0:
            return said
    return await asyncio.to_thread(lambda: orjson.dumps(describe(app)))
