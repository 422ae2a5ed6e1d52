# SPDX-License-Identifier: Apache-2.0
"""`from` and `to` of the views that show a stretch of time."""

from typing import Annotated

from fastapi import Query

from broker.api.fields import Time
from broker.core.units import MAX_TIME_US, US_PER_S
from broker.desk.ground.problems import Problem

DEFAULT_SPAN_US = 24 * 3600 * US_PER_S

From = Annotated[Time | None, Query(alias="from", description="default: now")]
To = Annotated[Time | None, Query(alias="to", description="default: 24 h later")]


def span(begin: int | None, end: int | None, now_us: int, min_us: int = 1) -> tuple[int, int]:
    """[begin, end) of at least `min_us`. Raises Problem naming what makes it shorter."""
    begin_us = now_us if begin is None else begin
    end_us = min(begin_us + DEFAULT_SPAN_US, MAX_TIME_US) if end is None else end
    if end_us - begin_us < min_us:
        raise Problem.of_field("from" if end is None else "to", f"less than {min_us} us lie between `from` and `to`")
    return begin_us, end_us
