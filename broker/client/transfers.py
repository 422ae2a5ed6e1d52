# SPDX-License-Identifier: Apache-2.0
"""Calls about transfers."""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import httpx

from broker.client.connection import FIRST_PAUSE_S, LONGEST_PAUSE_S, TIMEOUT, Connection, Json, part, refuse_errors
from broker.client.documents import BatchItem, Event, Quote, Scheduled, Transfer, TransferPreview
from broker.client.errors import BrokerUnreachable
from broker.client.sse import messages
from broker.core.transfer import ENDED as _ENDED_STATES

ENDED = frozenset(str(state) for state in _ENDED_STATES)
LONGEST_WAIT_S = 20.0  # per call; a call times out after 30 s
_SILENCE_S = 25.0  # of an event stream, which has a heartbeat every 10 s

Action = Literal["commit", "cancel", "pause", "resume"]


class Transfers(Connection):
    """Booking, changing and following transfers."""

    def submit(self, request: Json, idempotency_key: str | None = None) -> Transfer:
        """Book a transfer. With the caller's own key, repeating the call after a crash of the caller returns the same transfer."""
        return cast(Transfer, self._post("transfers", request, idempotency_key or uuid.uuid4().hex))

    def submit_batch(self, requests: Sequence[Json], idempotency_key: str | None = None) -> list[BatchItem]:
        """Book many, independently: items have a `status` and a `transfer` or a `problem`, in the order of `requests`."""
        return cast(list[BatchItem], self._post("transfers/batch", list(requests), idempotency_key or uuid.uuid4().hex)["items"])

    def quote(self, request: Json, planners: Sequence[str] | None = None) -> list[Quote]:
        """The plan that each of `planners` would book now. Nothing is booked."""
        body = dict(request) | ({"planners": list(planners)} if planners else {})
        return cast(list[Quote], self._read("POST", "quotes", json=body)["quotes"])

    def transfer(self, transfer_id: str, wait_s: float = 0.0) -> Transfer:
        """The transfer; `wait_s`: wait that long (at most LONGEST_WAIT_S) for a change. Returns at once for a transfer that has ended."""
        given = {"params": {"wait": min(wait_s, LONGEST_WAIT_S)}} if wait_s > 0 else {}
        return cast(Transfer, self._read("GET", f"transfers/{part(transfer_id)}", **given))

    def transfers(self, *, page_size: int = 100, **filters: str | Sequence[str] | None) -> Iterator[Transfer]:
        """All matching transfers, newest first, or in the order of `sort` ("finish", "-priority", ...).

        Filters: state and promise (one or several), project, node, source, destination, after, owner, mode, search, ended_after;
        with `outlook="true"`, each includes its outlook.
        """
        given: dict[str, Any] = {name: value for name, value in filters.items() if value}
        cursor: str | None = None
        while True:
            page = self._read("GET", "transfers", params=given | {"limit": page_size} | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def change(self, transfer_id: str, fields: Json, revision: int | None = None) -> Transfer:
        """Change a transfer; `revision` prevents overwriting a change made by another caller in the meantime."""
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        return cast(Transfer, self._write("PATCH", f"transfers/{part(transfer_id)}", json=dict(fields), headers=headers))

    def preview_change(self, transfer_id: str, fields: Json) -> TransferPreview:
        """The effect that `change` would have on the transfer. Nothing is changed."""
        path = f"transfers/{part(transfer_id)}"
        return cast(TransferPreview, self._read("PATCH", path, json=dict(fields), params={"preview": True}))

    def preview_act(self, transfer_id: str, action: Action) -> TransferPreview:
        """The effect that `act` would have on the transfer, and the capacity that it would free. Nothing is changed."""
        return cast(TransferPreview, self._read("POST", f"transfers/{part(transfer_id)}/{action}", params={"preview": True}))

    def act(self, transfer_id: str, action: Action) -> Transfer:
        """Commit, cancel, pause or resume a transfer; returns its new state."""
        return cast(Transfer, self._write("POST", f"transfers/{part(transfer_id)}/{action}"))

    def schedule(self, begin: str | None = None, end: str | None = None, **part: str) -> Iterator[Scheduled]:
        """The schedule, ordered by start, by default of the next 24 hours. Filters: link, host, project."""
        given = part | {name: value for name, value in {"from": begin, "to": end}.items() if value is not None}
        cursor: str | None = None
        while True:
            page = self._read("GET", "schedule", params=given | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def history(self, transfer_id: str) -> list[Event]:
        """The events of a transfer, the oldest first."""
        return cast(list[Event], self._read("GET", f"transfers/{part(transfer_id)}/events"))

    def wait(self, transfer_id: str, timeout_s: float | None = None) -> Transfer:
        """The transfer once it has ended, in any end state. Raises TimeoutError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = LONGEST_WAIT_S if deadline is None else min(max(deadline - time.monotonic(), 0.0), LONGEST_WAIT_S)
            transfer = self.transfer(transfer_id, wait_s=left)
            if transfer["state"] in ENDED:
                return transfer
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{transfer_id} is {transfer['state']} after {timeout_s} s")

    def events(self, subject: str | None = None, last_event_id: str | None = None, **only: Any) -> Iterator[Event]:
        """Every change from now on (or behind `last_event_id`), without end. After a lost connection the stream continues where it broke.

        `only`: project, state, terminal. An event `stream.reset` says that the broker could not continue behind the last one (its
        database was restored to an earlier state): the caller must then read its data again.
        """
        failing_since: float | None = None
        pause = FIRST_PAUSE_S
        while True:
            headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
            try:
                parameters = only | ({} if subject is None else {"subject": subject})
                timeout = httpx.Timeout(TIMEOUT.connect, read=_SILENCE_S)
                with self._http.stream("GET", "/v1/events", params=parameters, headers=headers, timeout=timeout) as response:
                    if response.status_code != 503:
                        refuse_errors(response)
                        failing_since, pause = None, FIRST_PAUSE_S
                        for message in messages(response.iter_lines()):
                            last_event_id = message.id
                            if message.data:
                                yield cast(Event, json.loads(message.data))
                problem = "the stream ended"
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
            now = time.monotonic()
            failing_since = now if failing_since is None else failing_since
            if now - failing_since >= self.patience_s:
                raise BrokerUnreachable(f"no answer from {self.url}: {problem}")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
