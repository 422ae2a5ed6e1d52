# SPDX-License-Identifier: Apache-2.0
"""/docs: the contract to read and to try, by Swagger UI. Its files come with the dashboard, so that no other host sees who reads."""

import asyncio

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from broker.api.headers import CONTENT_SECURITY_POLICY

router = APIRouter(include_in_schema=False)

# Swagger UI writes style attributes into its page; scripts are held to our own all the same.
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
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})


@router.get("/openapi.json")
async def contract(request: Request) -> Response:
    """Written once for each process, and not on the loop: FastAPI's own would do it for everybody who asks, with or without a token."""
    state = request.app.state
    if getattr(state, "contract", None) is None:
        state.contract = asyncio.ensure_future(asyncio.to_thread(lambda: orjson.dumps(request.app.openapi())))
    return Response(await asyncio.shield(state.contract), media_type="application/json")
