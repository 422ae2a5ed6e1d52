# SPDX-License-Identifier: Apache-2.0
"""A connection to the broker: it repeats requests while the broker restarts, and raises refusals as errors."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote as quoted

import httpx

from broker.client.errors import BrokerUnreachable, ProblemError

PATIENCE_S = 30.0
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
LONG_TIMEOUT = httpx.Timeout(600.0, connect=5.0)  # for thousands of links, and replanned transfers
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 3.0
_LATER = (429, 503)  # with Retry-After: the broker did not carry out the request

Json = Mapping[str, Any]


class Connection:
    """The base class of all groups of calls."""

    def __init__(self, url: str, token: str, patience_s: float | None = None) -> None:
        self.url = url
        self.patience_s = float(os.environ.get("BWB_PATIENCE_S", PATIENCE_S)) if patience_s is None else patience_s
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "bwb-client"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _post(self, path: str, body: Any, key: str) -> Any:
        return self._request("POST", path, repeatable=True, json=body, headers={"Idempotency-Key": key})

    def _read(self, method: str, path: str, **options: Any) -> Any:
        return self._request(method, path, repeatable=True, **options)

    def _write(self, method: str, path: str, **options: Any) -> Any:
        return self._request(method, path, repeatable=False, **options)

    def _request(
        self, method: str, path: str, *, repeatable: bool, content: Callable[[httpx.Response], Any] | None = None, **options: Any
    ) -> Any:
        give_up = time.monotonic() + self.patience_s
        pause = FIRST_PAUSE_S
        while True:
            wait = pause
            try:
                response = self._http.request(method, f"/v1/{path}", **options)
                if response.status_code not in _LATER or time.monotonic() + (wait := max(pause, _retry_after(response))) > give_up:
                    return (content or _content)(response)
            except httpx.TransportError as error:
                reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if time.monotonic() + wait > give_up or (reached and not repeatable):
                    raise BrokerUnreachable(f"no answer from {self.url}: {error or type(error).__name__}") from None
            time.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE_S)


def part(text: str) -> str:
    """`text` quoted as one segment of a path."""
    return quoted(text, safe="~:@+") or "-"


def _retry_after(response: httpx.Response) -> float:
    with suppress(ValueError):
        return min(float(response.headers.get("Retry-After", "0")), PATIENCE_S)
    return 0.0


def _content(response: httpx.Response) -> Any:
    refuse_errors(response)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise BrokerUnreachable(f"what answers at {response.url} is no broker") from None


def as_bytes(response: httpx.Response) -> bytes:
    """The body of the answer. Raises ClientError for a refusal."""
    refuse_errors(response)
    return response.content


def refuse_errors(response: httpx.Response) -> None:
    """Raises ProblemError or ClientError if the answer is a refusal."""
    if response.is_success:
        return
    response.read()
    try:
        document = dict(response.json())
    except (ValueError, TypeError):  # the page of a proxy, or an answer that is not from a broker
        document = {"type": "about:blank", "title": response.reason_phrase, "detail": response.text[:200].strip()}
    raise ProblemError({"status": response.status_code, **document})
