# SPDX-License-Identifier: Apache-2.0
"""ViFi, virtual finish time first: one at a time at full rate, in the order in which fair sharing would finish them.

Soudan, Guillier, Primet 2007 (RR-6205), section 3.1. On one link that is the fair sojourn protocol (Friedman and Henderson 2003), and
nobody finishes later than under fair sharing. With caps on rates, and over networks, that order alone does not keep this: whoever comes
late cannot make up for it. So who would be late keeps the share that fair sharing gives it, which always fits, and the others go around.
"""

from collections.abc import Sequence

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import FOREVER_US
from broker.planners.ifs import as_asked, best_path, fair_plans
from broker.planners.signature import Calendars
from broker.planners.vbls import Vbls

_MOST_ROUNDS = 16
_MOST_SWEEPS = 3


class Vifi(Vbls):
    """Alone, a request gets what VBLS gives it.

    Together: every transfer that fair sharing (`ifs`, on the same requests) would finish by its deadline is admitted and finishes no later
    than there, on any network, with any caps and times. The one exception are limits on reprogramming that fair sharing breaks.
    """

    name = "vifi"

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        wanted = best_path(request, network)
        return wanted if isinstance(wanted, Refusal) else super().plan(request, network, calendars, fewest_rows)

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        queue = _Queue(self, requests, network, calendars)
        keepers: set[int] = set()
        rounds = 0
        while late := queue.serve(keepers):
            # It ends: a transfer that keeps its share is not late. Rounds that go on for long end with all of them keeping it.
            rounds += 1
            keepers |= late if rounds < _MOST_ROUNDS else queue.shares.keys()
        if keepers:
            queue.move_up()
        return queue.answers


class _Queue:
    """The requests in virtual order, and what each of them has been given."""

    def __init__(self, planner: Vifi, requests: Sequence[Request], network: Network, calendars: Calendars) -> None:
        self._planner, self._requests, self._network, self._calendars = planner, requests, network, calendars
        fair = fair_plans(requests, network, calendars)
        finishes = [answer.finish_us if isinstance(answer, Plan) else FOREVER_US for answer in fair]
        self._order = sorted(range(len(requests)), key=lambda i: (finishes[i], i))
        kept = [as_asked(request, answer) for request, answer in zip(requests, fair, strict=True)]
        self.shares = {i: answer for i, answer in enumerate(kept) if isinstance(answer, Plan)}
        self._answers: list[Plan | Refusal] = list(kept)
        self._free: dict[str, Calendar] = {}

    def serve(self, keepers: set[int]) -> set[int]:
        """Plan everything anew: first the keepers' shares, then the others in virtual order. Answers who is late, against fair sharing."""
        self._free = {link: calendar.copy() for link, calendar in self._calendars.items()}
        for i in keepers:
            self._answers[i] = self.shares[i]
            self._book(self.shares[i])
        late = set()
        for i in self._order:
            if i in keepers:
                continue
            answer = self._answers[i] = self._planned(i)
            if isinstance(answer, Plan):
                self._book(answer)
            if i in self.shares and (isinstance(answer, Refusal) or answer.finish_us > self.shares[i].finish_us):
                late.add(i)
        return late

    def move_up(self) -> None:
        """What the keepers leave unused goes to whoever ends earlier with it, and to whoever was refused, as long as somebody gains.

        Nobody loses: each is planned anew with what is free and what it has, and takes the answer if that ends earlier.
        """
        for _ in range(_MOST_SWEEPS):
            gained = False
            for i in self._order:
                before = self._answers[i]
                if isinstance(before, Plan):
                    self._book(before, -1)
                after = self._planned(i)
                if isinstance(after, Plan) and (isinstance(before, Refusal) or after.finish_us < before.finish_us):
                    gained = True
                    self._answers[i] = after
                answer = self._answers[i]
                if isinstance(answer, Plan):
                    self._book(answer)
            if not gained:
                return

    @property
    def answers(self) -> Sequence[Plan | Refusal]:
        return self._answers

    def _planned(self, i: int) -> Plan | Refusal:
        return self._planner.plan(self._requests[i], self._network, self._free, fewest_rows=True)

    def _book(self, plan: Plan, sign: int = 1) -> None:
        for begin, end, rate, path in plan.segments:
            for link in path:
                self._free[link].book(begin, end, sign * rate)
