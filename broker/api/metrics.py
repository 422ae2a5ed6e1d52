# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics: counters of this process, and gauges read from the database when they are scraped."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy.ext.asyncio import AsyncConnection

from broker.fleet.liveness import is_up
from broker.store import audit, bookings, hosts, promises, transfers

_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """One registry per process; `bwb_up_*` gauges are the same in every process because the database says them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.admissions = Counter("bwb_admissions", "Transfers admitted by this process", ["planner"], registry=self.registry)
        self.refusals = Counter("bwb_refusals", "Transfers refused by this process", ["reason"], registry=self.registry)
        self.admission_seconds = Histogram(
            "bwb_admission_seconds",
            "From request body to committed answer, whole POST",
            ["kind"],
            buckets=_LATENCY_BUCKETS,
            registry=self.registry,
        )
        self.reports = Counter("bwb_agent_reports", "Agents' reports by outcome", ["outcome"], registry=self.registry)
        self._transfers = Gauge("bwb_transfers", "Transfers by state", ["state"], registry=self.registry)
        self._unheard = Gauge("bwb_transfers_unheard", "Live transfers that nothing is heard of", registry=self.registry)
        self._promises = Gauge("bwb_promises", "Promises to live transfers", ["status"], registry=self.registry)
        self._shares = Gauge("bwb_link_booked_share", "Booked of what each link carries, now", ["link"], registry=self.registry)
        self._ledger = Gauge("bwb_ledger_version", "Head of each link's ledger", ["link"], registry=self.registry)
        self._agents = Gauge("bwb_agents", "Enrolled agents", ["status"], registry=self.registry)
        self._offset = Gauge(
            "bwb_agent_clock_offset_seconds", "Clock offset to the broker as the agent sees it", ["host"], registry=self.registry
        )
        self._clock_error = Gauge(
            "bwb_agent_clock_error_seconds",
            "Bound of the error with which the agent knows broker time",
            ["host"],
            registry=self.registry,
        )
        self._violations = Gauge("bwb_audit_violations", "Rows found by the newest audit", ["check"], registry=self.registry)
        self._audited = Gauge("bwb_audit_timestamp_seconds", "When the newest audit ran; 0: never", registry=self.registry)

    async def exposition(
        self, connection: AsyncConnection, now_us: int, lost_after_us: int, shares: Mapping[str, float | None]
    ) -> bytes:
        """`shares`: how full each link is; None for one that carries nothing now."""
        standing = await promises.count(connection, await promises.look(connection, now_us, lost_after_us), now_us)
        for status, number in standing.live.items():
            self._promises.labels(status).set(number)
        self._shares.clear()
        for link_id, share in shares.items():
            self._shares.labels(link_id).set(float("nan") if share is None else share)
        self._transfers.clear()
        for state, number in (await transfers.count_by_state(connection)).items():
            self._transfers.labels(state).set(number)
        self._unheard.set(await transfers.count_unheard(connection))
        self._ledger.clear()
        for link_id, version in (await bookings.read_heads(connection)).items():
            self._ledger.labels(link_id).set(version)
        await self._note_agents(connection, now_us, lost_after_us)
        newest = await audit.newest(connection)
        self._violations.clear()
        for check in audit.CHECKS:
            self._violations.labels(check).set(len(newest[1].get(check, [])) if newest else 0)
        self._audited.set(newest[0] / 1e6 if newest else 0)
        return generate_latest(self.registry)

    async def _note_agents(self, connection: AsyncConnection, now_us: int, lost_after_us: int) -> None:
        known = await hosts.get_many(connection)
        up = sum(is_up(host, now_us, lost_after_us) for host in known.values())
        self._agents.labels("up").set(up)
        self._agents.labels("down").set(len(known) - up)
        self._offset.clear()  # removed hosts leave: there are never more series than enrolled hosts
        self._clock_error.clear()
        for host in known.values():
            if host.clock is not None:
                self._offset.labels(host.name).set(host.clock.get("offset_us", 0) / 1e6)
                self._clock_error.labels(host.name).set(host.clock.get("error_us", 0) / 1e6)
