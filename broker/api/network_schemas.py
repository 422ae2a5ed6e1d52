# SPDX-License-Identifier: Apache-2.0
"""Bodies and answers of changes of the network."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from broker.api.fields import Body, Name, Text, TimeText
from broker.api.schemas import LinkBody, LinkOut, OnBroken, WaitingReason

MAX_LINKS = 10_000


class NodeBody(Body):
    """Metadata of a node."""

    id: Name
    name: Text | None = Field(default=None, description="for people; null: the id")
    latitude: Annotated[float, Field(strict=True, ge=-90, le=90, allow_inf_nan=False)] | None = Field(
        default=None, description="degrees north"
    )
    longitude: Annotated[float, Field(strict=True, ge=-180, le=180, allow_inf_nan=False)] | None = Field(
        default=None, description="degrees east"
    )


class TopologyBody(Body):
    """The links of NET.json: what GET /v1/topology answers can be sent back as it is."""

    links: Annotated[list[LinkBody], Field(fail_fast=True)] = Field(max_length=MAX_LINKS)
    nodes: Annotated[list[NodeBody], Field(fail_fast=True)] | None = Field(
        default=None, max_length=MAX_LINKS, description="names and places of nodes; null: they stay as they are"
    )
    prune: bool = Field(default=True, strict=True, description="delete the links that are not named; false: only add and change")
    on_broken: OnBroken = "refuse"
    revision: Annotated[int, Field(strict=True, ge=0, le=2**62)] | None = Field(
        default=None, description="of the topology that was read; as If-Match, which comes first"
    )


class TopologyLink(BaseModel):
    """A link of a topology."""

    id: str
    source: str
    target: str
    capacity_bps: int
    mtu_bytes: int | None
    channel_bps: int | None
    slot_us: int
    metric: int | None
    available: list[dict[str, Any]]


class NodeOut(BaseModel):
    """A node and its location."""

    id: str
    name: str | None
    latitude: float | None
    longitude: float | None


class TopologyOut(BaseModel):
    """The network without hosts' NICs and without windows."""

    links: list[TopologyLink]
    nodes: list[NodeOut] = Field(description="those of which anything is known")
    revision: int


class OutcomeOut(BaseModel):
    """What became, or in a preview would become, of a transfer that loses its place on a link."""

    id: str
    label: str | None
    source: str
    destination: str
    priority: int
    state: Literal["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"]
    limited_by: str = Field(description="the link")
    promised_finish: TimeText | None
    finish_before: TimeText | None
    finish: TimeText | None = Field(description="by the new plan; null: the rest could not be booked anew")
    broken: bool = Field(description="it ends later than promised, or not at all")
    reason: WaitingReason | None = Field(description="why, where the promise is broken")


class Settled(BaseModel):
    """What a change of the network did to transfers."""

    replanned: list[str] = Field(description="transfers that lost their place and were planned anew, the most important first")
    broken: list[str] = Field(description="of these: the ones that cannot keep their promise")
    outcomes: list[OutcomeOut] = Field(description="what became of each; of the first 1000")
    preview: bool = Field(description="true: nothing was changed")


class LinkChangeOut(LinkOut, Settled):
    """A link after a change."""


class WindowAddedOut(LinkChangeOut):
    """A link after a window was added."""

    window: str = Field(description="id of the new window")


class LinkDeletedOut(Settled):
    """What deleting a link did."""

    id: str
    deleted: bool


class TopologyChangeOut(Settled):
    """What a new topology changed."""

    created: list[str]
    changed: list[str]
    deleted: list[str]
    unchanged: int
    cut_off: list[str] = Field(description="hosts whose node no link of the network touches")
    revision: int
