# SPDX-License-Identifier: Apache-2.0
"""The list planners over a whole batch, in several orders: a joint plan has to beat them, and they remain without a solver."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import FOREVER_US
from broker.planners.alap import Alap
from broker.planners.fbls import Fbls
from broker.planners.optimal.measure import Objective, weight
from broker.planners.optimal.sheets import Sheet
from broker.planners.signature import Planner
from broker.planners.spaghetti import Spaghetti
from broker.planners.vbls import Vbls

_HELD_TO = ("spaghetti", "vbls", "fbls")  # in file order: the answer is never worse than theirs
Hopeless = Callable[[Request, Plan | Refusal, Sheet], bool]


class Trial(NamedTuple):
    """A list planner, and the order in which it takes the requests."""

    planner: Planner
    order: Sequence[int]


def list_planners() -> dict[str, Planner]:
    """The list planners by name."""
    return {planner.name: planner for planner in (Spaghetti(), Vbls(), Fbls(), Alap())}


def trials(objective: Objective, requests: Sequence[Request]) -> Iterator[Trial]:
    """First file order for each planner; then orders that are good in theory: earliest deadline, smallest volume, Smith's rule."""
    planners = list_planners()
    indices = range(len(requests))
    for name in _HELD_TO:
        yield Trial(planners[name], list(indices))

    def deadline(i: int) -> int:
        return requests[i].deadline_us or FOREVER_US

    def volume(i: int) -> int:
        return requests[i].volume_bytes or 0

    orders = {
        "congestion": [sorted(indices, key=deadline)],
        "admitted": [sorted(indices, key=deadline), sorted(indices, key=volume)],
        "volume": [sorted(indices, key=deadline), sorted(indices, key=lambda i: -volume(i)), sorted(indices, key=volume)],
        "completion": [sorted(indices, key=lambda i: volume(i) / weight(requests[i])), sorted(indices, key=deadline)],
    }
    for order in orders[objective]:
        if order != list(indices):
            yield Trial(planners["vbls"], order)
            if objective in {"admitted", "volume"}:
                yield from (Trial(planners[name], order) for name in ("spaghetti", "alap"))


def in_order(
    trial: Trial,
    requests: Sequence[Request],
    network: Network,
    calendars: Mapping[str, Calendar],
    hopeless: Hopeless | None = None,
) -> list[Plan | Refusal] | None:
    """One answer per request, in the order of the requests; None as soon as `hopeless` returns True."""
    sheet = Sheet(calendars)
    answers: dict[int, Plan | Refusal] = {}
    for i in trial.order:
        answer = trial.planner.plan(requests[i], network, sheet, fewest_rows=True)
        if isinstance(answer, Plan):
            sheet.book(answer)
        if hopeless is not None and hopeless(requests[i], answer, sheet):
            return None
        answers[i] = answer
    return [answers[i] for i in range(len(requests))]


def alone(request: Request, network: Network, calendars: Mapping[str, Calendar], names: Sequence[str]) -> Plan | Refusal:
    """The first plan of these planners for one request on the free capacity; otherwise the refusal of the first planner."""
    planners = list_planners()
    answers: list[Plan | Refusal] = []
    for name in names:
        answer = planners[name].plan(request, network, calendars, fewest_rows=True)
        if isinstance(answer, Plan):
            return answer
        answers.append(answer)
    return answers[0]
