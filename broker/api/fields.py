# SPDX-License-Identifier: Apache-2.0
"""The field types of the API. Every one is bounded; JSON types are taken strictly (no "5" for 5, no 5.0, no NaN)."""

import json
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from broker.core.units import MAX_RATE_BPS, MAX_VOLUME_BYTES, parse_time

MAX_SLOT_US = 86_400_000_000  # one day
MAX_METADATA_BYTES = 16_384
_MAX_UNKNOWN = 20


def _storable(text: str) -> str:
    """PostgreSQL stores no NUL, UTF-8 no lone surrogates; other control characters have no business in names and labels."""
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("text", "must not contain control characters or lone surrogates")
    return text


def _time(value: Any) -> int:
    if not isinstance(value, str):
        raise PydanticCustomError("time", "must be an RFC 3339 time, for example 2026-01-01T00:00:00Z")
    try:
        return parse_time(value)
    except ValueError as error:
        raise PydanticCustomError("time", "{reason}", {"reason": str(error)}) from None


def _small_json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(value, allow_nan=False)  # Python's parser takes NaN and 1e400, and orjson would write them as null
        text = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise PydanticCustomError("json", "cannot be stored: {reason}", {"reason": str(error)}) from None
    if len(text) > MAX_METADATA_BYTES:
        raise PydanticCustomError(
            "json", "is {size} bytes of JSON; at most {most}", {"size": len(text), "most": MAX_METADATA_BYTES}
        )
    if b"\\u0000" in text:
        raise PydanticCustomError("json", "must not contain NUL characters")
    return value


_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:~#@+-]*$"

Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=128, pattern=_NAME)]
HostName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Text = Annotated[str, StringConstraints(strict=True, max_length=500), AfterValidator(_storable)]
FilePath = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4000), AfterValidator(_storable)]
Rate = Annotated[int, Field(strict=True, gt=0, le=MAX_RATE_BPS, description="bit/s")]
RateOrZero = Annotated[int, Field(strict=True, ge=0, le=MAX_RATE_BPS, description="bit/s")]
Volume = Annotated[int, Field(strict=True, gt=0, le=MAX_VOLUME_BYTES, description="bytes")]
Time = Annotated[
    int,
    BeforeValidator(_time),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-01T00:00:00Z"]}),
]
# Of answers, which are made by hand.
TimeText = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False, description="seconds")]
Path = Annotated[
    list[Name], Field(fail_fast=True, min_length=1, max_length=256, description="link ids, from source to destination")
]
Switch = Annotated[bool, Field(strict=True)]
Priority = Annotated[int, Field(strict=True, ge=-1000, le=1000, description="higher is more important")]
Json = Annotated[dict[str, Any], AfterValidator(_small_json)]
DataAddress = Annotated[
    str, StringConstraints(strict=True, min_length=3, max_length=300, pattern=r"^[A-Za-z0-9._:\[\]%-]+:[0-9]{1,5}$")
]
Fingerprint = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Body(BaseModel):
    """A request body: unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, value: Any) -> Any:
        """One mistake for a crowd of unknown fields: an error for each would take longer than all the rest."""
        known = len(cls.model_fields)
        if isinstance(value, dict) and len(value) > known + _MAX_UNKNOWN and cls.model_config["extra"] == "forbid":
            raise PydanticCustomError(
                "extra_forbidden", "has {given} fields; there are {known}", {"given": len(value), "known": known}
            )
        return value


# Of a change. No default: clients that are generated from the contract would send it, and so reset what their caller did not name.
UNCHANGED: Any = Field(default_factory=lambda: None)
# Of an answer: it is there, or it is not; null is another thing.
ABSENT = UNCHANGED


class Patch(Body):
    """A change (JSON merge patch, RFC 7396): a field that is absent stays as it is. No field has a default in the contract."""

    def given(self) -> dict[str, Any]:
        """The fields that the caller named, by name; null among them."""
        return {name: getattr(self, name) for name in self.model_fields_set}
