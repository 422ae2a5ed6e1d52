# SPDX-License-Identifier: Apache-2.0
"""BrokerClient: the REST API as methods. It waits for a broker that restarts, and never books anything twice."""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, cast
from urllib.parse import quote as quoted

import httpx

from broker.client.documents import (
    Audit,
    BatchItem,
    Calendar,
    EnrolmentToken,
    Event,
    Host,
    Job,
    Link,
    LinkBookings,
    LinkChange,
    LinkDeleted,
    NetworkLoad,
    NewToken,
    Overview,
    Quote,
    Scheduled,
    TokenInUse,
    Topology,
    TopologyChange,
    Transfer,
    TransferPreview,
)
from broker.client.errors import BrokerUnreachable, ProblemError
from broker.client.locate import locate
from broker.client.sse import messages
from broker.core.transfer import ENDED as _ENDED_STATES

ENDED = frozenset(str(state) for state in _ENDED_STATES)
JOB_ENDED = frozenset({"DONE", "FAILED", "CANCELED"})

PATIENCE_S = 30.0
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_LONG_TIMEOUT = httpx.Timeout(600.0, connect=5.0)  # thousands of links, and transfers planned anew
_SILENCE_S = 25.0  # of an event stream, which has a heartbeat every 10 s
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 3.0

Json = Mapping[str, Any]
Action = Literal["commit", "cancel", "pause", "resume"]


class BrokerClient:
    """One broker, one token. Usable from several threads.

    A request that got no answer, or 503, is sent again until `patience_s` have passed, where that is safe: reads, what has an
    Idempotency-Key (submissions always have one), and what never reached the broker. Raises ProblemError for a refusal (its
    `document` explains it) and BrokerUnreachable.
    """

    def __init__(self, url: str, token: str, patience_s: float | None = None) -> None:
        self.url = url
        self.patience_s = float(os.environ.get("BWB_PATIENCE_S", PATIENCE_S)) if patience_s is None else patience_s
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "bwb-client"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT)

    @classmethod
    def find(cls, state_dir: Path | None = None, patience_s: float | None = None) -> Self:
        """The broker of a state directory, of BWB_URL and BWB_TOKEN, or of the default state directory. Raises NoBroker."""
        endpoint = locate(state_dir)
        return cls(endpoint.url, endpoint.token, patience_s)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- transfers -------------------------------------------------------------------------------------------------------------

    def submit(self, request: Json, idempotency_key: str | None = None) -> Transfer:
        """Book a transfer. With a key of your own, the same call after a crash of yours gives the same transfer."""
        return cast(Transfer, self._post("transfers", request, idempotency_key or uuid.uuid4().hex))

    def submit_batch(self, requests: Sequence[Json], idempotency_key: str | None = None) -> list[BatchItem]:
        """Book many, each for itself: items have a `status` and a `transfer` or a `problem`, in the order of `requests`."""
        return cast(list[BatchItem], self._post("transfers/batch", list(requests), idempotency_key or uuid.uuid4().hex)["items"])

    def quote(self, request: Json, planners: Sequence[str] | None = None) -> list[Quote]:
        """What each of `planners` would book now. Nothing is booked."""
        body = dict(request) | ({"planners": list(planners)} if planners else {})
        return cast(list[Quote], self._read("POST", "quotes", json=body)["quotes"])

    def transfer(self, transfer_id: str) -> Transfer:
        return cast(Transfer, self._read("GET", f"transfers/{_part(transfer_id)}"))

    def transfers(self, *, page_size: int = 100, **filters: str | Sequence[str] | None) -> Iterator[Transfer]:
        """Newest first, unless `sort` says otherwise ("finish", "-priority", ...).

        Filters: state and promise (one or several), project, node, source, destination, after, owner, mode, search, ended_after; with
        `outlook="true"`, each says how it goes.
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
        """Change what is asked; `revision` guards against changing what somebody else changed meanwhile."""
        headers = {} if revision is None else {"If-Match": f'"{revision}"'}
        return cast(Transfer, self._write("PATCH", f"transfers/{_part(transfer_id)}", json=dict(fields), headers=headers))

    def preview_change(self, transfer_id: str, fields: Json) -> TransferPreview:
        """What `change` would make of the transfer. Nothing is changed."""
        path = f"transfers/{_part(transfer_id)}"
        return cast(TransferPreview, self._read("PATCH", path, json=dict(fields), params={"preview": True}))

    def preview_act(self, transfer_id: str, action: Action) -> TransferPreview:
        """What `act` would make of the transfer, and what it would give back. Nothing is changed."""
        return cast(TransferPreview, self._read("POST", f"transfers/{_part(transfer_id)}/{action}", params={"preview": True}))

    def act(self, transfer_id: str, action: Action) -> Transfer:
        return cast(Transfer, self._write("POST", f"transfers/{_part(transfer_id)}/{action}"))

    def schedule(self, begin: str | None = None, end: str | None = None, **part: str) -> Iterator[Scheduled]:
        """Who sends when, in order of the starts, by default in the next 24 hours. Part of it: link, host, project."""
        given = part | {name: value for name, value in {"from": begin, "to": end}.items() if value is not None}
        cursor: str | None = None
        while True:
            page = self._read("GET", "schedule", params=given | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def history(self, transfer_id: str) -> list[Event]:
        return cast(list[Event], self._read("GET", f"transfers/{_part(transfer_id)}/events"))

    def wait(self, transfer_id: str, timeout_s: float | None = None) -> Transfer:
        """The transfer once it has ended, however it did. Raises TimeoutError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            transfer = self.transfer(transfer_id)
            if transfer["state"] in ENDED:
                return transfer
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{transfer_id} is {transfer['state']} after {timeout_s} s")
            time.sleep(0.5)

    def events(self, subject: str | None = None, last_event_id: str | None = None) -> Iterator[Event]:
        """Every change from now on (or behind `last_event_id`), for ever. A lost connection is taken up where it broke."""
        failing_since: float | None = None
        pause = _FIRST_PAUSE_S
        while True:
            headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
            try:
                parameters = {} if subject is None else {"subject": subject}
                timeout = httpx.Timeout(_TIMEOUT.connect, read=_SILENCE_S)
                with self._http.stream("GET", "/v1/events", params=parameters, headers=headers, timeout=timeout) as response:
                    if response.status_code != 503:
                        _refuse_errors(response)
                        failing_since, pause = None, _FIRST_PAUSE_S
                        for message in messages(response.iter_lines()):
                            last_event_id = message.id
                            yield cast(Event, json.loads(message.data))
                problem = "the stream ended"
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
            now = time.monotonic()
            failing_since = now if failing_since is None else failing_since
            if now - failing_since >= self.patience_s:
                raise BrokerUnreachable(f"no answer from {self.url}: {problem}")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    # -- the network -----------------------------------------------------------------------------------------------------------

    def links(self) -> list[Link]:
        return cast(list[Link], self._read("GET", "links"))

    def link(self, link_id: str) -> Link:
        return cast(Link, self._read("GET", f"links/{_part(link_id)}"))

    def topology(self) -> Topology:
        """The network without hosts' NICs and windows, and what is known of its nodes."""
        return cast(Topology, self._read("GET", "topology"))

    def put_topology(
        self,
        links: Sequence[Json],
        *,
        nodes: Sequence[Json] | None = None,
        prune: bool = True,
        on_broken: str = "refuse",
        preview: bool = False,
    ) -> TopologyChange:
        """Make the network what `links` say; with `prune`, links that are not among them go. `preview` changes nothing.

        `nodes`: their names and places, {id, name, latitude, longitude}; without, what is known of them stays.
        """
        body: dict[str, Any] = {"links": [dict(link) for link in links], "prune": prune, "on_broken": on_broken}
        if nodes is not None:
            body["nodes"] = [dict(node) for node in nodes]
        parameters = {"preview": "true"} if preview else {}
        answer = self._request("PUT", "topology", repeatable=True, json=body, params=parameters, timeout=_LONG_TIMEOUT)
        return cast(TopologyChange, answer)

    def create_link(self, link: Json) -> Link:
        return cast(Link, self._write("POST", "links", json=dict(link)))

    def change_link(self, link_id: str, fields: Json, *, preview: bool = False) -> LinkChange:
        """Lowering it under what is booked is refused (`breaks-promises`) unless `on_broken` is "replan". `preview` changes nothing."""
        parameters = {"preview": "true"} if preview else {}
        answer = self._write("PATCH", f"links/{_part(link_id)}", json=dict(fields), params=parameters, timeout=_LONG_TIMEOUT)
        return cast(LinkChange, answer)

    def delete_link(self, link_id: str, *, on_broken: str = "refuse", preview: bool = False) -> LinkDeleted | None:
        """What became, or would become, of the transfers on it; None without `on_broken="replan"` and `preview`."""
        parameters = {"on_broken": on_broken} | ({"preview": "true"} if preview else {})
        answer = self._write("DELETE", f"links/{_part(link_id)}", params=parameters, timeout=_LONG_TIMEOUT)
        return cast(LinkDeleted | None, answer)

    def calendar(
        self, link_id: str, begin: str | None = None, end: str | None = None, points: int | None = None, reverse: bool = False
    ) -> Calendar:
        """Steps of capacity, booked and free rate; by default of the next 24 hours. With `reverse`, also what is booked on the way back."""
        wanted = {"from": begin, "to": end, "points": points, "reverse": "true" if reverse else None}
        parameters = {name: value for name, value in wanted.items() if value is not None}
        return cast(Calendar, self._read("GET", f"links/{_part(link_id)}/calendar", params=parameters))

    def link_bookings(self, link_id: str, begin: str | None = None, end: str | None = None, top: int = 50) -> LinkBookings:
        """Who has what of a link, by default in the next 24 hours: the `top` transfers for themselves, all others together."""
        parameters = {name: value for name, value in {"from": begin, "to": end, "top": top}.items() if value is not None}
        return cast(LinkBookings, self._read("GET", f"links/{_part(link_id)}/bookings", params=parameters))

    def network_load(self, begin: str | None = None, end: str | None = None, steps: int = 96) -> NetworkLoad:
        """The largest share booked of every link in each of `steps` spans, by default of the next 24 hours."""
        parameters = {name: value for name, value in {"from": begin, "to": end, "steps": steps}.items() if value is not None}
        return cast(NetworkLoad, self._read("GET", "network/load", params=parameters))

    def add_window(self, link_id: str, window: Json, *, preview: bool = False) -> LinkChange:
        parameters = {"preview": "true"} if preview else {}
        answer = self._write("POST", f"links/{_part(link_id)}/windows", json=dict(window), params=parameters, timeout=_LONG_TIMEOUT)
        return cast(LinkChange, answer)

    def remove_window(self, link_id: str, window_id: str, *, preview: bool = False) -> LinkChange:
        parameters = {"preview": "true"} if preview else {}
        return cast(LinkChange, self._write("DELETE", f"links/{_part(link_id)}/windows/{_part(window_id)}", params=parameters))

    # -- long work --------------------------------------------------------------------------------------------------------------

    def plan(self, wishes: Json | None = None, idempotency_key: str | None = None) -> Job:
        """Have what has not yet been sent planned anew, all together; `wishes`: objective, project, links, transfers, apply, ...

        The job tells the rest: `wait_for_job`.
        """
        return cast(Job, self._post("plans", dict(wishes or {}), idempotency_key or uuid.uuid4().hex))

    def apply_plan(self, job_id: str) -> Job:
        """Book what a plan found. Raises ProblemError (`conflict`) when something changed since."""
        return cast(Job, self._request("POST", f"{_job_path(job_id)}/apply", repeatable=True))

    def simulate(self, specification: Json, idempotency_key: str | None = None) -> Job:
        """Have a what-if simulation run, by default on the broker's own network."""
        return cast(Job, self._post("simulations", dict(specification), idempotency_key or uuid.uuid4().hex))

    def simulation_table(self, job_id: str) -> str:
        """The results of a simulation as CSV."""
        table: bytes = self._read("GET", _job_path(job_id), params={"format": "csv"}, content=_bytes)
        return table.decode()

    def simulation_plot(self, job_id: str) -> bytes:
        """The results of a simulation as PNG."""
        return cast(bytes, self._read("GET", f"{_job_path(job_id)}/plot.png", content=_bytes))

    def job(self, job_id: str) -> Job:
        return cast(Job, self._read("GET", _job_path(job_id)))

    def jobs(self, kind: Literal["plan", "simulation"], *, state: Sequence[str] = (), page_size: int = 100) -> Iterator[Job]:
        """Newest first, without results."""
        given: dict[str, Any] = {"limit": page_size} | ({"state": list(state)} if state else {})
        cursor: str | None = None
        while True:
            page = self._read("GET", f"{kind}s", params=given | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def cancel_job(self, job_id: str) -> Job:
        return cast(Job, self._request("POST", f"{_job_path(job_id)}/cancel", repeatable=True))

    def wait_for_job(self, job_id: str, timeout_s: float | None = None, seen: Callable[[Job], None] = lambda _: None) -> Job:
        """The job once it has ended, however it did; `seen` is shown it every half second. Raises TimeoutError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            job = self.job(job_id)
            seen(job)
            if job["state"] in JOB_ENDED:
                return job
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{job_id} is {job['state']} after {timeout_s} s")
            time.sleep(0.5)

    # -- hosts, tokens, health -------------------------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        return cast(list[Host], self._read("GET", "hosts"))

    def host(self, name: str) -> Host:
        return cast(Host, self._read("GET", f"hosts/{_part(name)}"))

    def enrolment_token(self, host: str, node: str, nic_bps: int, ttl_s: int = 3600) -> EnrolmentToken:
        body = {"host": host, "node": node, "nic_bps": nic_bps, "ttl_s": ttl_s}
        return cast(EnrolmentToken, self._write("POST", "hosts/enrolment-tokens", json=body))

    def remove_host(self, host: str) -> None:
        self._write("DELETE", f"hosts/{_part(host)}")

    def drain(self, host: str, drained: bool = True) -> Host:
        return cast(Host, self._write("PATCH", f"hosts/{_part(host)}", json={"drained": drained}))

    def tokens(self) -> list[TokenInUse]:
        return cast(list[TokenInUse], self._read("GET", "tokens"))

    def create_token(self, name: str, scopes: Sequence[str], expires: str | None = None) -> NewToken:
        body = {"name": name, "scopes": list(scopes), "expires": expires}
        return cast(NewToken, self._write("POST", "tokens", json=body))

    def revoke_token(self, token_id: str) -> None:
        self._write("DELETE", f"tokens/{_part(token_id)}")

    def overview(self) -> Overview:
        """Promises kept, at risk and broken; what was asked for; transfers, agents, links."""
        return cast(Overview, self._read("GET", "overview"))

    def audit(self) -> Audit:
        """Have the invariants proven now."""
        return cast(Audit, self._read("GET", "audit"))

    # -- one request -----------------------------------------------------------------------------------------------------------

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
        pause = _FIRST_PAUSE_S
        while True:
            wait = pause
            try:
                response = self._http.request(method, f"/v1/{path}", **options)
                if response.status_code != 503 or time.monotonic() + (wait := max(pause, _retry_after(response))) > give_up:
                    return (content or _content)(response)
            except httpx.TransportError as error:
                reached = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if time.monotonic() + wait > give_up or (reached and not repeatable):
                    raise BrokerUnreachable(f"no answer from {self.url}: {error or type(error).__name__}") from None
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _part(text: str) -> str:
    """One segment of a path, whatever is in it."""
    return quoted(text, safe="~:@+") or "-"


def _job_path(job_id: str) -> str:
    """Plans and simulations have ids of their own kind."""
    return f"{'simulations' if job_id.startswith('sim_') else 'plans'}/{_part(job_id)}"


def _retry_after(response: httpx.Response) -> float:
    with suppress(ValueError):
        return min(float(response.headers.get("Retry-After", "0")), PATIENCE_S)
    return 0.0


def _content(response: httpx.Response) -> Any:
    _refuse_errors(response)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise BrokerUnreachable(f"what answers at {response.url} is no broker") from None


def _bytes(response: httpx.Response) -> bytes:
    _refuse_errors(response)
    return response.content


def _refuse_errors(response: httpx.Response) -> None:
    if response.is_success:
        return
    response.read()
    try:
        document = dict(response.json())
    except (ValueError, TypeError):  # a proxy's page, or not a broker at all
        document = {"type": "about:blank", "title": response.reason_phrase, "detail": response.text[:200].strip()}
    raise ProblemError({"status": response.status_code, **document})
