# SPDX-License-Identifier: Apache-2.0
"""Answers of the overview, of the network's load, and how a transfer goes."""

from typing import Literal

from pydantic import BaseModel, Field

from broker.api.fields import TimeText

Promise = Literal["kept", "at_risk", "broken"]


class LivePromises(BaseModel):
    """How many promises of live transfers stand how."""

    kept: int
    at_risk: int
    broken: int


class EndedPromises(BaseModel):
    """How many promises of ended transfers were kept."""

    kept: int
    broken: int


class EndangeredOut(BaseModel):
    """A transfer whose promise is at risk."""

    id: str
    label: str | None
    project: str | None
    source: str
    destination: str
    state: str
    priority: int
    promise: Promise
    why: str = Field(description="code: unheard, host_down, not_begun, behind; booked_late, overdue")
    detail: str = Field(description="why, in words")
    promised_finish: TimeText
    finish: TimeText = Field(description="by the present plan")


class PromisesOut(BaseModel):
    """How promises stand."""

    live: LivePromises
    day: EndedPromises = Field(description="of what ended in the last 24 hours")
    endangered: list[EndangeredOut] = Field(description="live ones at risk or broken, the most important first; at most 20")


class RefusalReason(BaseModel):
    """How often requests were refused for one reason."""

    reason: str = Field(description="code of the problem")
    hour: int
    day: int


class DecisionsHour(BaseModel):
    """Decisions of one hour."""

    begin: TimeText
    admitted: int
    refused: int


class DecisionsOut(BaseModel):
    """What was asked for: in the last 60 minutes, in the last 24 hours, and in each hour of these."""

    admitted_hour: int
    admitted_day: int
    refused_hour: int
    refused_day: int
    reasons: list[RefusalReason] = Field(description="the most frequent first")
    hours: list[DecisionsHour] = Field(description="24, the oldest first")


class StatesOut(BaseModel):
    """Live transfers now, and those that ended in the last 24 hours."""

    HELD: int
    RESERVED: int
    ACTIVE: int
    FINISHED: int
    FAILED: int
    CANCELED: int
    EXPIRED: int


class AgentsOut(BaseModel):
    """How many agents are up, late and down."""

    up: int
    late: int = Field(description="silent for more than half the time after which an agent counts as down")
    down: int


class BusyLink(BaseModel):
    """A link that is nearly full."""

    id: str
    source: str
    target: str
    capacity_bps: int
    booked_bps: int
    share: float | None = Field(description="booked of capacity, now; null: it carries nothing")


class LinksNow(BaseModel):
    """Links at this moment."""

    number: int
    busiest: list[BusyLink] = Field(description="at most 20")


class OverviewOut(BaseModel):
    """What an operator looks at first."""

    at: TimeText
    promises: PromisesOut
    decisions: DecisionsOut
    transfers: StatesOut
    agents: AgentsOut
    links: LinksNow


class LinkLoad(BaseModel):
    """What a link carries over time."""

    id: str
    shares: list[float | None] = Field(description="of each span the largest share booked; null: the link carries nothing then")


class NetworkLoadOut(BaseModel):
    """What every link carries over time."""

    begin: TimeText
    end: TimeText
    steps: int
    links: list[LinkLoad]


class OutlookOut(BaseModel):
    """How a transfer's promise stands."""

    promise: Promise | None = Field(description="null: nothing is promised of it (held, paused, canceled)")
    why: str | None = Field(description="code behind `promise`")
    detail: str | None = Field(description="and in words")
    planned_bytes: int = Field(description="what the plan has carried by now")
    expected_finish: TimeText | None = Field(description="live and not paused: when it will finish by the model")
    earliest_finish: TimeText | None = Field(description="with nine in ten chances that it is later, if it goes on as lately")
    latest_finish: TimeText | None = Field(description="and earlier")
    model: Literal["plan", "reports"] | None = Field(
        description="plan: as booked; reports: at the share of the planned rate that the last reports show"
    )
    applied_bps: int | None = Field(description="the rate that its sender applied, by its last report")
    share: float | None = Field(description="of the planned rate, reached lately")
    owner_name: str = Field(description="name of the token that it was submitted with")
