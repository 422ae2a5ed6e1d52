# SPDX-License-Identifier: Apache-2.0
"""The reason for each refused request: what it lacks beside the served ones, and the link that binds."""

from broker.core.plan import Plan, Refusal
from broker.core.units import US_PER_S, format_time
from broker.planners.offers import find_binding
from broker.planners.optimal.batch import Batch
from broker.planners.optimal.sheets import Sheet


def explain(batch: Batch) -> None:
    """Give every refused request of the best answers its reason."""
    sheet = Sheet(batch.yardstick.calendars)
    for answer in batch.best:
        if isinstance(answer, Plan):
            sheet.book(answer)
    for i in batch.joint:
        request = batch.requests[i]
        if isinstance(batch.best[i], Plan) or request.deadline_us is None:
            continue
        bound = find_binding(request, batch.network, sheet)
        link = "" if bound is None else f"; link {bound.link} binds"
        window = f"{(request.deadline_us - request.not_before_us) / US_PER_S:.6f} s before the deadline {format_time(request.deadline_us)}"
        batch.best[i] = Refusal(
            "infeasible",
            f"{request.volume_bytes} bytes do not fit into the {window} beside the {_served(batch)} requests served{link}",
            "deadline",
        )


def _served(batch: Batch) -> int:
    return sum(isinstance(answer, Plan) for answer in batch.best)
