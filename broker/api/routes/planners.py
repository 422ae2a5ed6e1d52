# SPDX-License-Identifier: Apache-2.0
"""/v1/planners: which there are, and what each does."""

import inspect
from dataclasses import asdict

from fastapi import Response
from pydantic import BaseModel, Field

from broker.api import render
from broker.api.context import Reader
from broker.api.routing import make_router
from broker.planners import DEFAULT_PLANNER, PLANNERS
from broker.planners.signature import Planner

router = make_router("transfers", "/v1/planners")


class PlannerOut(BaseModel):
    """A planner and its traits."""

    name: str
    about: str = Field(description="in one sentence")
    books: bool = Field(description="false: it predicts and compares, and what it answers is never booked")
    joint: bool = Field(description="those of one batch are planned together")
    eager: bool = Field(description="an early finish is asked of it: what waits is planned anew when something comes free")
    late: bool = Field(description="lateness is asked of it: its plans never move earlier")
    fixed_rate: bool = Field(description="it makes, or tries, plans of one rate throughout")
    takes_turns: bool = Field(description="those of one batch follow one another, chained by start signals where two meet")
    time_limit: bool = Field(description="its search may take any time: it is given a limit and runs where nobody waits")
    default: bool


@router.get("", operation_id="listPlanners", response_model=list[PlannerOut])
async def list_planners(_: Reader) -> Response:
    """Every planner with its traits."""
    return render.answer([
        {
            "name": name,
            "about": _about(planner),
            **asdict(planner.traits),
            "default": name == DEFAULT_PLANNER,
        }
        for name, planner in PLANNERS.items()
    ])  # fmt: skip


def _about(planner: Planner) -> str:
    """The first docstring line of its module, as plain text."""
    module = inspect.getmodule(type(planner))
    return ((module and module.__doc__) or "").strip().split("\n")[0].replace("`", "")
