# SPDX-License-Identifier: Apache-2.0
"""The items of a batch, validated a few milliseconds at a time, so that a batch of thousands does not delay a single request."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from broker.api.schemas import TransferRequest

_AT_A_TIME_S = 0.004
_MAX_ERRORS = 20  # reported to the caller; each costs more than a valid item


async def validate(given: Sequence[Any]) -> list[TransferRequest]:
    """Raises RequestValidationError with the first mistakes."""
    items: list[TransferRequest] = []
    errors: list[Any] = []
    began = time.perf_counter()
    for index, item in enumerate(given):
        try:
            items.append(TransferRequest.model_validate(item))
        except ValidationError as invalid:
            found = invalid.errors(include_url=False, include_input=False)
            errors.extend({**error, "loc": ("body", index, *error["loc"])} for error in found)
            if len(errors) >= _MAX_ERRORS:
                break
        if time.perf_counter() - began > _AT_A_TIME_S:
            await asyncio.sleep(0)
            began = time.perf_counter()
    if errors:
        raise RequestValidationError(errors)
    return items
