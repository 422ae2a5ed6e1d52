# SPDX-License-Identifier: Apache-2.0
"""An unexpected exception is answered with a bare 500; the log has it in full once in a while, and a line of every other time.

So no caller fills the log by repeating what fails. Starlette's own place for this writes a traceback into it for every request.
"""

import logging
import time
import traceback

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api import request_ids

log = logging.getLogger(__name__)

_IN_FULL_EVERY_S = 60.0
_MAX_LOGGED = 8000  # characters of one fault; a traceback of the database's driver alone has 25,000
_ANSWER = {
    "type": "about:blank",
    "title": "Internal error",
    "status": 500,
    "detail": "a fault of the broker; its log has the details",
}


class Faults:
    """Answers an uncaught exception with a 500 without a traceback, and logs it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._logged: dict[tuple[str, int], float] = {}  # place in the code -> when it was logged in full

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Catch what the application raises."""
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, sent)
        except Exception as fault:
            if scope["type"] != "http":
                raise
            self._log(scope, fault)
            if not begun:  # else the server sees an answer without an end, and closes the connection
                answer = orjson.dumps(_ANSWER | {"request_id": request_ids.current()})
                await Response(answer, 500, media_type="application/problem+json")(scope, receive, send)

    def _log(self, scope: Scope, fault: Exception) -> None:
        frame = traceback.extract_tb(fault.__traceback__)[-1]
        place, now = (frame.filename, frame.lineno or 0), time.monotonic()
        request = f"{scope['method']} {scope['path'][:200]!r}"
        if now - self._logged.get(place, -_IN_FULL_EVERY_S) < _IN_FULL_EVERY_S:
            log.error("%s failed again: %s at %s:%d", request, type(fault).__name__, *place)
            return
        self._logged[place] = now
        text = "".join(traceback.format_exception(fault))
        if len(text) > _MAX_LOGGED:  # the raise is at the end, the request at the beginning
            half = _MAX_LOGGED // 2
            text = f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"
        log.error("%s failed\n%s", request, text)
