# SPDX-License-Identifier: Apache-2.0
"""Calls for long-running jobs: plans and simulations."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, cast

from broker.client.connection import Connection, Json, as_bytes, part
from broker.client.documents import Job

JOB_ENDED = frozenset({"DONE", "FAILED", "CANCELED"})


class Jobs(Connection):
    """Re-optimisations and simulations, from the request to the result."""

    def plan(self, wishes: Json | None = None, idempotency_key: str | None = None) -> Job:
        """Replan all data that has not been sent yet, jointly; `wishes`: objective, project, links, transfers, apply, ...

        Returns the job; `wait_for_job` returns its result.
        """
        return cast(Job, self._post("plans", dict(wishes or {}), idempotency_key or uuid.uuid4().hex))

    def apply_plan(self, job_id: str) -> Job:
        """Book the result of a plan. Raises ProblemError (`conflict`) if something has changed since."""
        return cast(Job, self._request("POST", f"{_job_path(job_id)}/apply", repeatable=True))

    def simulate(self, specification: Json, idempotency_key: str | None = None) -> Job:
        """Run a what-if simulation, by default on the broker's own network."""
        return cast(Job, self._post("simulations", dict(specification), idempotency_key or uuid.uuid4().hex))

    def simulation_table(self, job_id: str) -> str:
        """The results of a simulation as CSV."""
        table: bytes = self._read("GET", _job_path(job_id), params={"format": "csv"}, content=as_bytes)
        return table.decode()

    def simulation_plot(self, job_id: str) -> bytes:
        """The results of a simulation as PNG."""
        return cast(bytes, self._read("GET", f"{_job_path(job_id)}/plot.png", content=as_bytes))

    def job(self, job_id: str) -> Job:
        """The job."""
        return cast(Job, self._read("GET", _job_path(job_id)))

    def jobs(self, kind: Literal["plan", "simulation"], *, state: Sequence[str] = (), page_size: int = 100) -> Iterator[Job]:
        """The jobs of one kind, newest first, without results."""
        given: dict[str, Any] = {"limit": page_size} | ({"state": list(state)} if state else {})
        cursor: str | None = None
        while True:
            page = self._read("GET", f"{kind}s", params=given | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def cancel_job(self, job_id: str) -> Job:
        """Cancel the job; returns its new state."""
        return cast(Job, self._request("POST", f"{_job_path(job_id)}/cancel", repeatable=True))

    def wait_for_job(self, job_id: str, timeout_s: float | None = None, seen: Callable[[Job], None] = lambda _: None) -> Job:
        """The job once it has ended, with any result; `seen` is called with it every half second. Raises TimeoutError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            job = self.job(job_id)
            seen(job)
            if job["state"] in JOB_ENDED:
                return job
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{job_id} is {job['state']} after {timeout_s} s")
            time.sleep(0.5)


def _job_path(job_id: str) -> str:
    """The path of a job: ids of plans and simulations have different prefixes."""
    return f"{'simulations' if job_id.startswith('sim_') else 'plans'}/{part(job_id)}"
