# SPDX-License-Identifier: Apache-2.0
"""Refusals in the contract: the members of a problem, and which operations may answer which."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from broker.api.contract.parts import EVERY_ANSWER, Part
from broker.api.fields import ABSENT, TimeText
from broker.api.statuses import STATUS
from broker.desk.ground.problems import TYPE_PREFIX

_CODES = ", ".join(f"`{code}`" for code in STATUS)


class FieldError(BaseModel):
    """One mistake in one field."""

    field: str = Field(description="its path, as `3.source`; or the name of a query parameter or of a header")
    detail: str


class Interval(BaseModel):
    """[from, to) in RFC 3339."""

    from_: TimeText = Field(alias="from")
    to: TimeText


class BindingLink(BaseModel):
    """The link that is in the way, when, and the transfers that hold it then."""

    link: str
    interval: Interval
    reservations: list[str]


class CounterOffer(BaseModel):
    """A change with which the request would be admitted until `valid_until`, as long as the network stays as it is."""

    kind: Literal["earliest_finish", "smallest_deadline", "largest_volume", "smallest_rate", "largest_rate_min", "longest_duration"]
    detail: str
    valid_until: TimeText
    finish: TimeText = Field(default_factory=str, description="earliest_finish: when it would be done without a deadline")
    deadline: TimeText = ABSENT
    volume_bytes: int = ABSENT
    rate_max_bps: int = ABSENT
    rate_min_bps: int | None = ABSENT
    duration_s: int = ABSENT


class BrokenPromise(BaseModel):
    """A transfer whose promise a change would break."""

    id: str
    label: str | None
    priority: int
    finish: TimeText | None


class ProblemOut(BaseModel):
    """Why a request was refused (RFC 9457). The type determines which members explain it; new members may be added."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, WithJsonSchema({"type": "string", "format": "uri", "examples": [f"{TYPE_PREFIX}infeasible"]})] = Field(
        description=f"ends in a stable code, one of {_CODES}; about:blank: a fault of the broker"
    )
    title: str
    status: int
    detail: str
    request_id: str = Field(default_factory=str, description="as in the header X-Request-ID, and in the broker's log")
    errors: list[FieldError] = Field(default_factory=list, description="the fields at fault")
    errors_total: int = Field(default_factory=int, description="how many, where `errors` names only the first")
    binding: BindingLink | None = Field(
        default_factory=lambda: None, description="of `infeasible`: what is in the way; null: nothing is left"
    )
    counter_offers: list[CounterOffer] = Field(default_factory=list, description="of `infeasible`: what would be admitted now")
    offers_omitted: str = Field(default_factory=str, description="why offers are missing")
    broken: list[BrokenPromise] = Field(default_factory=list, description="transfers whose promise the change would break")
    broken_total: int = ABSENT
    retry_after_s: float = Field(default_factory=float, description="as in the header Retry-After")
    limit: Any = Field(default_factory=int, description="the limit that was reached: a number, or its name, value and use")
    limit_bytes: int = ABSENT
    scope: str = Field(default_factory=str, description="the scope that the token lacks")
    state: str = Field(default_factory=str, description="the state that does not allow it")
    revision: int = Field(default_factory=int, description="what it is now, where If-Match named another")
    host: str = Field(default_factory=str, description="whose agent is in the way")
    unheard_since: TimeText = ABSENT


_NAMES = {
    400: "Malformed",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "Unavailable",
}
_HEADERS = {
    401: ("WWW-Authenticate",),
    415: ("Accept",),
    429: ("Retry-After", "RateLimit", "RateLimit-Policy"),
    503: ("Retry-After",),
}


def responses() -> dict[str, Part]:
    """Of each status that refuses: its response, by the name under which operations refer to it."""
    return {name: _response(status) for status, name in _NAMES.items()}


def _response(status: int) -> Part:
    codes = ", ".join(f"`{code}`" for code, of in STATUS.items() if of == status)
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS.get(status, ())}
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {
        "description": f"Refused: {codes}.",
        "headers": headers | EVERY_ANSWER,
        "content": {"application/problem+json": {"schema": schema}},
    }


def refused_with(status: int) -> Part:
    """The reference to the answer that the contract has for a status."""
    return {"$ref": f"#/components/responses/{_NAMES[status]}"}


def statuses(method: str, path: str, operation: Part) -> set[int]:
    """With which statuses an operation may refuse, by what it takes; what its route names comes on top."""
    found = {422, 429, 503}
    if operation.get("security") != [] or "requestBody" in operation:
        found |= {401, 403}
    if "{" in path:
        found.add(404)
    if method != "get":
        found |= {400, 409, 413}
    if "requestBody" in operation:
        found.add(415)
    if any(parameter["name"] == "If-Match" for parameter in operation.get("parameters", ())):
        found.add(412)
    return found
