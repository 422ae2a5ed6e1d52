# SPDX-License-Identifier: Apache-2.0
"""Bodies and answers of long jobs: re-optimisation and simulation."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from broker.api.fields import Body, Name, Text, TimeText
from broker.api.schemas import LinkBody
from broker.store.jobs import JobState

SECONDS_A_DAY = 86_400

TransferName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64, pattern=r"^[a-z0-9_]+$")]


class PlanBody(Body):
    """Plan what has not yet been sent anew, all transfers together, and keep every promise. Without restrictions: all that may move."""

    objective: Literal["congestion", "admitted", "volume", "completion"] = Field(
        default="congestion",
        description="congestion: the least share of any link; completion: the least sum of finishes, weighted by priority; "
        "admitted, volume: as many transfers, as much volume as possible on time again where promises were broken",
    )
    project: Text | None = None
    links: Annotated[list[Name], Field(fail_fast=True)] | None = Field(
        default=None, min_length=1, max_length=1000, description="only transfers booked on one of these"
    )
    transfers: Annotated[list[TransferName], Field(fail_fast=True)] | None = Field(
        default=None, min_length=1, max_length=10_000, description="only these"
    )
    time_limit_s: Annotated[int, Field(strict=True, ge=1, le=600)] = Field(default=30, description="for the solver")
    review_s: Annotated[int, Field(strict=True, ge=0, le=SECONDS_A_DAY)] = Field(
        default=120,
        description="without `apply`: how long the result can be applied; what is booked until then stays as it is",
    )
    apply: bool = Field(
        default=False, strict=True, description="book the result at once; computed anew while others book in between"
    )


class NetworkBody(Body):
    """NET.json."""

    links: Annotated[list[LinkBody], Field(fail_fast=True)] = Field(min_length=1, max_length=20_000)


class SimulationBody(BaseModel):
    """A specification as `bwb simulate` takes it (docs/simulation.md), and the network to run it on."""

    model_config = ConfigDict(extra="allow")

    network: Literal["current"] | NetworkBody = Field(
        default="current", description="the broker's own links, or others as NET.json"
    )


class JobOut(BaseModel):
    """A job, its progress and its result."""

    id: str
    kind: Literal["plan", "simulation"]
    state: JobState
    progress: float = Field(description="0 to 1")
    stage: str | None = Field(description="what it is doing, or what it waits for, in words")
    cancel_requested: bool
    attempts: int
    request: dict[str, Any]
    result: dict[str, Any] | None = Field(description="once it is DONE; lists leave it out")
    error: dict[str, Any] | None = Field(description="members of a problem (RFC 9457), once it is FAILED")
    owner: str
    owner_name: str | None = Field(description="what the owner's token is called")
    revision: int
    created: TimeText
    started: TimeText | None
    finished: TimeText | None


class JobPage(BaseModel):
    """A page of jobs."""

    items: list[JobOut]
    next: str | None = Field(description="give it as `cursor` for the next page; null on the last")
