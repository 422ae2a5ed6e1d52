# SPDX-License-Identifier: Apache-2.0
"""Hosts, tokens, sessions and the audit log: bodies, and the shapes of answers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from broker.api.fields import Body, HostName, Name, Patch, Priority, Rate, Text, Time, TimeText
from broker.fleet.tokens import Scope

Unlimited = Literal["unlimited"]
Count = Annotated[int, Field(strict=True, ge=0, le=10**15)]


class LimitsBody(Patch):
    """Limits of one token by name; null: the broker's default."""

    open_transfers: Count | Unlimited | None = Field(default=None, description="held, reserved and active ones")
    booked_gb_hours: Count | Unlimited | None = Field(
        default=None, description="of these together: GB times hours from the request to the planned end"
    )
    horizon_s: Annotated[int, Field(strict=True, ge=1, le=10**12)] | Unlimited | None = Field(
        default=None, description="how far ahead anything may be booked or asked for"
    )
    priority: Priority | Unlimited | None = Field(default=None, description="the highest")
    jobs: Count | Unlimited | None = Field(default=None, description="long ones that wait or run")
    successors: Count | Unlimited | None = Field(default=None, description="behind one transfer of another token")


class TokenChangeBody(Body):
    """A change of a token."""

    limits: LimitsBody


class TokenBody(Body):
    """A new token."""

    name: Text = Field(min_length=1)
    scopes: list[Literal[Scope.READ, Scope.SUBMIT, Scope.OPERATE, Scope.ADMIN]] = Field(min_length=1, max_length=4)
    expires: Time | None = None
    limits: LimitsBody = LimitsBody()


class SessionBody(Body):
    """A sign-in by token."""

    token: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] = Field(description="bwb_...")


class EnrolmentTokenBody(Body):
    """A new enrolment token."""

    host: HostName
    node: Name
    nic_bps: Rate
    ttl_s: Annotated[int, Field(strict=True, ge=1, le=30 * 86_400)] = 3600


class EnrolmentTokenOut(BaseModel):
    """An enrolment token."""

    id: str
    host: str
    node: str
    nic_bps: int
    state: Literal["open", "used", "revoked", "expired"] = Field(description="with an open one its host can join")
    created: TimeText
    expires: TimeText
    used: TimeText | None
    revoked: TimeText | None = Field(description="by an operator, or because the host joined or was removed since it was made")


class NewEnrolmentToken(EnrolmentTokenOut):
    """A new enrolment token with its secret."""

    token: str = Field(description="the secret, shown only in the answer that creates it")


class HostChangeBody(Body):
    """A change of a host."""

    drained: bool = Field(strict=True, description="a drained host takes no new transfers")


class HostClock(BaseModel):
    """What an agent said last of its clock, and what the broker makes of it."""

    offset_us: int = Field(description="broker time minus the host's own wall clock")
    error_us: int = Field(description="bound of the error with which the agent knows broker time, when it said so")
    adjtimex_error_us: int | None = Field(description="what the host's kernel estimates of its own clock")
    synchronised: bool | None = Field(description="NTP or PTP steers the host's clock")
    steps: int = Field(description="how often the agent saw the broker's clock step")
    last_step_us: int | None
    at: TimeText | None = Field(description="when the agent said so")
    good: bool = Field(description="good enough for starts that rest on the clock alone")
    reason: str | None = Field(description="why not")


class HostOut(BaseModel):
    """A host and its agent."""

    name: str
    node: str
    nic_bps: int
    data_address: str
    tls: bool
    agent_version: str | None
    capabilities: dict[str, Any] | None
    clock: HostClock | None
    drained: bool
    up: bool
    state: Literal["up", "late", "down", "stopped"] = Field(
        description="late: silent for half of what makes it down; stopped: its agent said goodbye"
    )
    revision: int = Field(description="of its assignments")
    fetched_revision: int | None = Field(description="what its agent was given last: behind `revision`, it follows an older plan")
    enrolled: TimeText
    last_seen: TimeText | None
    transfers: int = Field(description="live ones from and to it")
    booked_bps: int = Field(description="what it should send now")
    applied_bps: int = Field(description="what its agent says it has set for that")
    sending_bps: int = Field(description="measured, in the last ten seconds")
    receiving_bps: int


class TokenOut(BaseModel):
    """A token."""

    id: str
    name: str
    scopes: list[str]
    host: str | None
    created: TimeText
    expires: TimeText | None
    revoked: TimeText | None
    last_used: TimeText | None = Field(description="to a minute; null: never")


class NewTokenOut(TokenOut):
    """A new token with its secret."""

    token: str = Field(description="the secret, shown only in the answer that creates it")


class LimitOut(BaseModel):
    """A limit of a token and how much of it is used."""

    value: int | None = Field(description="null: no limit")
    default: bool = Field(description="it is the broker's, not the token's own")
    used: float | None = Field(description="null: nothing is counted")


class TokenInUse(TokenOut):
    """A token, and what would no longer go on without it."""

    sessions: int = Field(description="of the dashboard, open with it now")
    transfers: int = Field(description="live ones that it owns; they go on without it")
    limits: dict[str, LimitOut] = Field(description="by name: what it may have at once, and has")
    revision: int


class SessionOut(BaseModel):
    """Who is calling."""

    id: str = Field(description="of the token, the `owner` of what is booked with it")
    name: str
    scopes: list[str]
    expires: TimeText | None = Field(description="when the session ends; null: called with the token itself")


class EventOut(BaseModel):
    """Something that happened."""

    id: str
    at: TimeText
    actor: str
    actor_name: str | None = Field(description="of the token that acted; null in the live stream, and where there is none")
    action: str
    subject_kind: str
    subject: str
    subject_name: str | None = Field(description="label of the transfer, name of the token; null as above")
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditLogPage(BaseModel):
    """A page of the audit log."""

    items: list[EventOut]
    next: str | None


class AuditOut(BaseModel):
    """Whether the invariants hold, proven from SQL alone."""

    clean: bool
    at: TimeText
    took_us: int
    violations: dict[str, list[dict[str, Any]]] = Field(description="by check: rows that break it, at most 50")


class HealthOut(BaseModel):
    """Is the broker well?"""

    status: str
    wakeups: bool | None = Field(default=None, description="of readiness: Redis tells processes of each other's changes at once")
    detail: str | None = Field(default=None, description="why it is not ready")
