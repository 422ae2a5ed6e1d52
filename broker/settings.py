# SPDX-License-Identifier: Apache-2.0
"""Settings of a broker process, from BWB_* environment variables. `bwb up` sets them for the processes that it starts."""

import os
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

import platformdirs
from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every field is BWB_<NAME> in the environment. Durations are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(env_prefix="BWB_", extra="ignore")

    database_url: str = Field(default="", description="postgresql://user@host/db; empty: not configured")
    redis_url: str = Field(default="", description="redis://... or unix://...; empty: no wake-ups between processes, no jobs")
    secret_key: SecretStr = Field(
        default=SecretStr(""), description="at least 32 characters; data-channel keys are derived from it"
    )

    session_s: int = Field(default=12 * 3600, ge=60, description="a sign-in to the dashboard ends after this")
    session_idle_s: int = Field(default=3600, ge=60, description="and after so long without a page that is open")

    body_limit_bytes: int = Field(default=8 * 2**20, ge=1024)
    connections: int = Field(
        default=10_000, ge=10, description="most TCP connections of an API process; fewer where RLIMIT_NOFILE allows fewer"
    )
    connections_per_address: int = Field(default=512, ge=1, description="and of one address; trusted proxies may have any number")
    header_timeout_s: float = Field(
        default=10, gt=0, description="a connection on which no request header came for so long is closed"
    )
    body_timeout_s: float = Field(default=20, gt=0, description="and one whose request body came that slowly")
    write_timeout_s: float = Field(default=20, gt=0, description="and one whose reader took nothing of its answer for so long")
    unread_bytes: int = Field(
        default=64 * 2**20, ge=2**20, description="most that waits for readers, all answers together; who waited longest goes"
    )
    token_rate: float = Field(default=2000, ge=0, description="requests a second of one token, in the long run; 0: without limit")
    token_burst: int = Field(default=10_000, ge=1, description="and so many at once")
    address_rate: float = Field(
        default=50,
        ge=0,
        description="requests a second of one address that need no token: pages, sign-ins, health; 0: without limit",
    )
    address_burst: int = Field(default=500, ge=1, description="and so many at once")
    unknown_rate: float = Field(
        default=5, ge=0, description="tokens and cookies of one address, a second, that nobody knows; 0: any"
    )
    unknown_burst: int = Field(default=50, ge=1, description="and so many at once")
    trusted_proxies: str = Field(
        default="", description="networks (CIDR, by commas) whose X-Forwarded-For and X-Forwarded-Proto count; default: nobody's"
    )

    batch_limit: int = Field(default=10_000, ge=1, description="most transfers in one POST /v1/transfers/batch")
    desk_batch: int = Field(default=512, ge=1, description="most requests that the desk puts into one transaction")

    # For tokens without the scope operate; `bwb token` sets the limits of a single token.
    token_open_transfers: int = Field(
        default=50_000, ge=1, description="most open transfers of one token: half of what figures.md measures the broker with"
    )
    token_booked_gb_hours: int = Field(
        default=2_400_000_000, ge=1, description="most GB x hours until the end that one token has booked: 10 PB within ten days"
    )
    token_horizon_s: int = Field(default=366 * 86_400, ge=60, description="how far ahead one may book")
    token_priority: int = Field(default=100, ge=-1000, le=1000, description="the highest that one may ask for, of 1000")
    token_jobs: int = Field(default=4, ge=0, description="most long jobs of one token that wait or run")
    token_successors: int = Field(default=0, ge=0, description="most successors of one token behind a transfer of another")
    planning_budget_ms: int = Field(default=2000, ge=50, description="what one request may take of heavy planning, all in all")
    planning_workers: int = Field(
        default=1, ge=0, le=16, description="processes for it beside each API process; 0: in the API's own"
    )
    planning_memory_mb: int = Field(default=384, ge=256, description="and what each of them may use")

    submit_may_preempt: bool = Field(default=False, description="preempt needs the scope submit only, not operate")
    hold_s: int = Field(default=300, ge=1, description="how long a held booking waits for its commit")
    managed_lead_ms: int = Field(
        default=1500, ge=0, description="managed transfers begin this much later, so that agents know in time"
    )
    replan_lead_ms: int = Field(default=500, ge=0, description="how much later a new plan for a running transfer begins")
    managed_margin_ppm: int = Field(default=10_000, ge=0, le=1_000_000, description="extra volume booked for managed transfers")
    managed_margin_ms: int = Field(default=50, ge=0, le=60_000, description="and so much time at full rate")
    start_grace_s: int = Field(
        default=60,
        ge=1,
        description="so long after its booked start a transfer that an agent never fetched is withdrawn, and one that was not heard of is unheard",
    )
    lost_after_s: int = Field(
        default=3600,
        ge=1,
        description="so long after the end of its booking an unheard transfer counts as failed, until it is heard again",
    )
    clock_limit_ms: int = Field(
        default=10, ge=1, le=10_000, description="successors start by the clock on hosts that know broker time this well, no others"
    )
    agent_lost_s: int = Field(default=90, ge=1, description="an agent not heard of for so long counts as down")
    pull_forward: Literal["off", "waiting", "all"] = Field(
        default="waiting", description="who may finish earlier when capacity comes back: nobody, who has not begun, everybody"
    )
    pull_candidates: int = Field(default=64, ge=1, le=10_000, description="and how many are looked at in one round")
    fallback_rate_bps: int = Field(default=1_000_000, ge=0, description="what agents may send after the end of their schedule")
    agent_files: str = Field(
        default="", description="folder of the agents that hosts download; empty: agents/bin of the installation"
    )
    dashboard_files: str = Field(default="", description="folder of the built dashboard; empty: that of the installation")
    public_url: str = Field(default="", description="how hosts and browsers reach this broker; empty: as they asked for it")
    stream_limit: int = Field(
        default=256, ge=1, description="most event streams and waiting calls of one token at a time, in one process"
    )
    retention_days: int = Field(default=30, ge=1, description="how long ended transfers' ledger rows, reports and events are kept")
    database_pool: int = Field(default=8, ge=2)

    job_slots: int = Field(default=1, ge=0, le=64, description="long jobs at once, on all workers together; 0: they wait")
    job_queue: int = Field(default=100, ge=1, description="most jobs that may wait")
    job_lost_s: int = Field(default=15, ge=3, description="a job whose worker is silent for so long is started again")
    job_time_limit_s: int = Field(default=3600, ge=1, description="a job that takes longer has failed")
    job_memory_mb: int = Field(default=4096, ge=256, description="a job whose process needs more has failed")
    plan_limit: int = Field(default=1000, ge=1, description="most transfers that one re-optimisation may move")

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, given: str) -> str:
        for network in networks(given):
            ip_network(network, strict=False)
        return given


def networks(given: str) -> list[str]:
    """The networks of a comma-separated list."""
    return [part.strip() for part in given.split(",") if part.strip()]


@cache
def settings() -> Settings:
    """The settings from the environment, read once."""
    return Settings()


def state_dir(given: Path | None = None) -> Path:
    """The directory in which `bwb up` keeps its state: --state-dir, else BWB_STATE_DIR, else the user's state directory."""
    if given is not None:
        return given
    if from_environment := os.environ.get("BWB_STATE_DIR"):
        return Path(from_environment)
    return platformdirs.user_state_path("bandwidth-broker")
