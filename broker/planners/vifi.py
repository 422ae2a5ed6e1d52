# SPDX-License-Identifier: Apache-2.0
"""ViFi, virtual finish time first: one transfer at a time at full rate, in the order in which fair sharing would finish them.

Soudan, Guillier, Primet 2007 (RR-6205), section 3.1. On one link without rate caps this order alone ensures that no transfer
finishes later than under fair sharing (the fair sojourn protocol, Friedman and Henderson 2003). With rate caps, or over a network,
it does not: a transfer that waits early may not be able to catch up. Fair shares always fit side by side, so a transfer that would
be late keeps its fair share, and the others are planned around it; then each transfer in turn moves forward and displaces later
ones, as long as each of those can still keep its fair finish.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from broker.core.calendar import Calendar
from broker.core.network import Network
from broker.core.plan import Plan, Refusal
from broker.core.request import Request
from broker.core.units import FOREVER_US
from broker.planners.ifs import as_asked, best_path, fair_plans
from broker.planners.signature import Calendars, Traits
from broker.planners.vbls import Vbls

_MAX_ROUNDS = 6
_MAX_ATTEMPTS = 8
# The budget for displacement, in bookings of a row on a link (some microseconds each): per request, and more if there are few
# requests.
_PATIENCE, _PATIENCE_OF_FEW = 1_000, 300_000
_COST_OF_PLAN = 100
_MAX_SWEEPS = 3
_NOT_YET = Refusal("infeasible", "its turn has not come")


class Vifi(Vbls):
    """A single request gets the plan of VBLS.

    Jointly, every transfer that `ifs` would finish as requested, given the same requests, is admitted and finishes no later than
    there. The others (late under fair sharing, or with limits on reprogramming that it breaks) get the plan of VBLS in their turn.
    """

    name = "vifi"
    traits = Traits(joint=True, eager=True, takes_turns=True)

    def plan(self, request: Request, network: Network, calendars: Calendars, fewest_rows: bool = False) -> Plan | Refusal:
        """The plan of one request alone, on its best path."""
        wanted = best_path(request, network)
        return wanted if isinstance(wanted, Refusal) else super().plan(request, network, calendars, fewest_rows)

    def plan_together(self, requests: Sequence[Request], network: Network, calendars: Calendars) -> Sequence[Plan | Refusal]:
        """The plans of all requests, one after the other on each link."""
        queue = _Queue(self, requests, network, calendars)
        if not queue.serve_in_order():
            queue.push_in_order()
            queue.move_up()
        return queue.answers


class _Queue:
    """The requests in virtual order, their current answers, and the remaining free capacity."""

    def __init__(self, planner: Vifi, requests: Sequence[Request], network: Network, calendars: Calendars) -> None:
        self._planner, self._requests, self._network, self._calendars = planner, requests, network, calendars
        fair = fair_plans(requests, network, calendars)
        finishes = [answer.finish_us if isinstance(answer, Plan) else FOREVER_US for answer in fair]
        self._order = sorted(range(len(requests)), key=lambda i: (finishes[i], i))
        self._shares = [as_asked(request, answer) for request, answer in zip(requests, fair, strict=True)]
        self._promised = {i: share.finish_us for i, share in enumerate(self._shares) if isinstance(share, Plan)}
        self._begin({})

    def serve_in_order(self) -> bool:
        """Plan the requests in virtual order, each on the capacity left by earlier ones. Returns True if this alone keeps all promises.

        In the next round, a late request keeps its fair share, which is booked before all others; after too many rounds, all keep
        theirs.
        """
        keepers: set[int] = set()
        for _ in range(_MAX_ROUNDS):
            self._begin({i: self._shares[i] for i in keepers})
            late = set()
            for i in self._order:
                if i not in keepers:
                    answer = self.answers[i] = self._planned(i, self._free)
                    _book(self._free, answer)
                    if not self._keeps(i, answer):
                        late.add(i)
            if not late:
                return not keepers
            keepers |= late
        self._begin({i: self._shares[i] for i in self._promised})
        return False

    def push_in_order(self) -> None:
        """Then move each request in turn as far forward as the earlier ones leave room and the later ones still keep their promises."""
        self._begin({i: self.answers[i] for i in self._promised})
        settled = self._empty()
        patience, each = 0, max(_PATIENCE, _PATIENCE_OF_FEW // max(len(self._order), 1))
        for turn, i in enumerate(self._order):
            patience += each
            patience -= self._push(i, self._planned(i, settled), self._order[turn + 1 :], patience)
            _book(settled, self.answers[i])

    def move_up(self) -> None:
        """Give remaining capacity to requests that finish earlier with it, and to refused ones, as long as any request gains."""
        for _ in range(_MAX_SWEEPS):
            gained = False
            for i in self._order:
                before = self.answers[i]
                _book(self._free, before, -1)
                after = self._planned(i, self._free)
                if _is_earlier(after, before) or _is_simpler(after, before):
                    gained = True
                    self.answers[i] = after
                _book(self._free, self.answers[i])
            if not gained:
                return

    def _push(self, i: int, wish: Plan | Refusal, later: Iterable[int], patience: int) -> int:
        """Give request i its wish, and replan, in virtual order, those `later` requests that are in the way.

        A displaced request that could not keep its promise stays in place, and i gets a new wish around it; in the worst case no
        request moves. Returns the cost, at most `patience`.
        """
        before, spent, attempts = self.answers[i], 0, 0
        _book(self._free, before, -1)
        pushed = self._in_the_way(wish, later) if _is_earlier(wish, before) else []
        if sum(self._cost(j) for j in pushed) > patience:
            pushed, wish = [], self._planned(i, self._free)
        self._book_all(pushed, -1)
        while _is_earlier(wish, before):
            cost = sum(self._cost(j) for j in pushed)
            if pushed and (attempts == _MAX_ATTEMPTS or spent + cost > patience):
                self._book_all(pushed)
                pushed = []
                wish = self._planned(i, self._free)
                continue
            _book(self._free, wish)
            moved: dict[int, Plan | Refusal] = {}
            for j in pushed:
                answer = self._planned(j, self._free)
                if self._keeps(j, answer):
                    moved[j] = answer
                    _book(self._free, answer)
            attempts += 1
            spent += cost
            if len(moved) == len(pushed):
                self.answers[i] = wish
                for j, answer in moved.items():
                    self.answers[j] = answer
                return spent
            for answer in (wish, *moved.values()):
                _book(self._free, answer, -1)
            self._book_all(j for j in pushed if j not in moved)
            pushed = list(moved)
            wish = self._planned(i, self._free)
        self._book_all(pushed)
        _book(self._free, before)
        if isinstance(before, Refusal):
            self.answers[i] = wish
        return spent

    def _in_the_way(self, wish: Plan | Refusal, later: Iterable[int]) -> list[int]:
        """The later requests that use a link of the wish during its time."""
        if isinstance(wish, Refusal):
            return []
        links = {link for segment in wish.segments for link in segment.path}
        found = []
        for j in later:
            held = self.answers[j]
            if isinstance(held, Plan) and held.start_us < wish.finish_us and held.finish_us > wish.start_us:
                paths = dict.fromkeys(segment.path for segment in held.segments)
                if any(not links.isdisjoint(path) for path in paths):
                    found.append(j)
        return found

    def _cost(self, i: int) -> int:
        """The cost of removing the plan of i and replanning it."""
        held = self.answers[i]
        return _COST_OF_PLAN + (sum(len(segment.path) for segment in held.segments) if isinstance(held, Plan) else 0)

    def _keeps(self, i: int, answer: Plan | Refusal) -> bool:
        """True if i, given this answer, ends no later than under fair sharing, or has no promise."""
        return i not in self._promised or (isinstance(answer, Plan) and answer.finish_us <= self._promised[i])

    def _begin(self, held: Mapping[int, Plan | Refusal]) -> None:
        """Start again with only the bookings in `held`."""
        self.answers = [held.get(i, _NOT_YET) for i in range(len(self._requests))]
        self._free = self._empty()
        for answer in held.values():
            _book(self._free, answer)

    def _planned(self, i: int, calendars: Calendars) -> Plan | Refusal:
        return self._planner.plan(self._requests[i], self._network, calendars, fewest_rows=True)

    def _empty(self) -> dict[str, Calendar]:
        return {link: calendar.copy() for link, calendar in self._calendars.items()}

    def _book_all(self, members: Iterable[int], sign: int = 1) -> None:
        for i in members:
            _book(self._free, self.answers[i], sign)


def _book(calendars: Calendars, answer: Plan | Refusal, sign: int = 1) -> None:
    if isinstance(answer, Plan):
        for path in dict.fromkeys(segment.path for segment in answer.segments):
            rows = np.array([segment[:3] for segment in answer.segments if segment.path == path], np.int64)
            for link in path:
                calendars[link].book_all(rows[:, 0], rows[:, 1], sign * rows[:, 2])


def _is_earlier(after: Plan | Refusal, before: Plan | Refusal) -> bool:
    if isinstance(after, Refusal) or isinstance(before, Refusal):
        return isinstance(after, Plan) and isinstance(before, Refusal)
    return after.finish_us < before.finish_us


def _is_simpler(after: Plan | Refusal, before: Plan | Refusal) -> bool:
    """True if `after` ends at the same time in fewer rows."""
    if isinstance(after, Refusal) or isinstance(before, Refusal):
        return False
    return after.finish_us == before.finish_us and len(after.segments) < len(before.segments)
