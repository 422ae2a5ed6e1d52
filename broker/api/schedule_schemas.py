# SPDX-License-Identifier: Apache-2.0
"""Answers made for plots: times in them are integers, microseconds since the epoch, because there are many."""

from typing import Annotated

from pydantic import BaseModel, Field

from broker.api.fields import TimeText

Stretch = Annotated[list[int], Field(min_length=3, max_length=3, description="[begin_us, end_us, rate_bps]")]
PathStretch = Annotated[list[int], Field(min_length=4, max_length=4, description="[begin_us, end_us, rate_bps, index of its path]")]


class LinkUser(BaseModel):
    """A transfer that uses a link."""

    id: str
    label: str | None
    project: str | None
    state: str
    source: str
    destination: str
    booked_bytes: int = Field(description="on the link, in the range")
    segments: list[Stretch]


class OtherUsers(BaseModel):
    """All that are not listed, together."""

    transfers: int
    booked_bytes: int
    segments: list[Stretch]


class Measured(BaseModel):
    """What was really carried in a stretch of time."""

    begin_us: int
    span_us: int
    rates_bps: list[int | None] = Field(description="mean of each span, all senders together; null: no report")


class LinkBookingsOut(BaseModel):
    """A link's bookings by transfer."""

    link: str
    begin: TimeText
    end: TimeText
    transfers: list[LinkUser] = Field(description="the largest volume first")
    rest: OtherUsers
    measured: Measured


class Scheduled(BaseModel):
    """A transfer on the schedule."""

    id: str
    label: str | None
    project: str | None
    source: str
    destination: str
    state: str
    mode: str
    paused: bool
    priority: int
    volume_bytes: int | None
    start: TimeText | None
    finish: TimeText | None
    promised_finish: TimeText | None
    deadline: TimeText | None
    paths: list[list[str]]
    segments: list[PathStretch] = Field(description="clipped to the range; with `link`, those on it alone")


class ScheduleOut(BaseModel):
    """What happens when."""

    begin: TimeText
    end: TimeText
    items: list[Scheduled] = Field(description="in order of their start")
    next: str | None = Field(description="give it as `cursor` for the next page; null on the last")
