# SPDX-License-Identifier: Apache-2.0
"""Headers that every answer carries: its request's id, what a browser may load and run because of it, and who may embed it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.api import request_ids

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
ALWAYS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    # Not no-referrer: with it browsers send `Origin: null` from our own page, too, and the check of origins would refuse that.
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # A shared cache must not show one caller's answer to another; answers that may be cached set their own header.
    "cache-control": "no-store",
}
_ENCODED = tuple((name.encode(), value.encode()) for name, value in ALWAYS.items())


_REQUEST_ID = request_ids.HEADER.lower().encode()


class Headers:
    """Gives each request its id, and adds to its answer what that does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the security headers to an answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = (_REQUEST_ID, request_ids.begin(scope))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message["headers"]
                names = {name.lower() for name, _ in given}
                message["headers"] = [*given, request_id, *(header for header in _ENCODED if header[0] not in names)]
            await send(message)

        await self.app(scope, receive, sent)
