# SPDX-License-Identifier: Apache-2.0
"""Counter-offers: asked for exactly as offered, at any time until they run out, they are admitted; and one step further they are not."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from broker.core.network import Link
from broker.core.transfer import Mode
from broker.core.units import US_PER_S, parse_time
from broker.desk.admission.admit import Admit
from broker.desk.admission.ask import Ask, find_asked_links
from broker.desk.ground.batch import Batch
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.ground.replica import Booking, Replica
from broker.planners import PLANNERS
from broker.store.bookings import LinkRecord
from broker.store.transfers import Transfer
from tests.asks import FILE, make_ask
from tests.core.grid import cases
from tests.service import START_US

MBIT = 10**6
POLICY = Policy()

# How the words of an offer are said in an ask, and how they are one step better for whoever asks.
WORDS = {
    "smallest_deadline": ("deadline", "deadline_us", -1),
    "largest_volume": ("volume_bytes", "volume_bytes", 1),
    "smallest_rate": ("rate_max_bps", "rate_max_bps", -1),
    "largest_rate_min": ("rate_min_bps", "rate_min_bps", 1),
    "longest_duration": ("duration_s", "duration_us", US_PER_S),
}


class Network:
    """Books without a database: links between A, C and B, what is booked on them, and hosts h1 at A and h2 at B."""

    def __init__(self, links: list[Link], bookings: list[Booking]) -> None:
        nic = [Link("h1~up", "h1", "A", 10**10), Link("h2~down", "B", "h2", 10**10)]
        hosts = {"h1~up": "h1", "h2~down": "h2"}
        self.replica = Replica()
        self.replica.adopt(1, {link.id: LinkRecord(link, hosts.get(link.id), 0, 1, ()) for link in [*links, *nic]})
        for link_id, begin, end, rate in bookings:
            if self.replica.calendars[link_id].lowest(begin, end) >= rate:
                self.replica.calendars[link_id].book(begin, end, rate)

    def ask(self, ask: Ask, now_us: int) -> Transfer | Problem:
        """What the desk would say; nothing stays booked."""
        self.replica.looked_us = now_us
        locked = dict.fromkeys(find_asked_links([ask], self.replica), 0)
        batch = Batch(self.replica, locked, {}, now_us)
        (answer,) = Admit([ask], "me", POLICY).decide(batch)
        batch.journal.undo()
        assert answer is not None
        return answer


@st.composite
def networks(draw: st.DrawFn) -> Network:
    shapes = st.tuples(
        st.sampled_from([100, 200, 400]), st.sampled_from([None, None, 30 * MBIT]), st.sampled_from([1, 1, US_PER_S // 4])
    )
    links = []
    for link_id, source, target in (("L1", "A", "B"), ("L2", "A", "C"), ("L3", "C", "B"))[: draw(st.sampled_from([1, 3]))]:
        rate, channel, slot = draw(shapes)
        links.append(Link(link_id, source, target, rate * MBIT, channel_bps=channel, slot_us=slot))
    bookings = []
    for _ in range(draw(st.integers(0, 12))):
        link = draw(st.sampled_from(links))
        begin = START_US + draw(st.integers(-5, 60)) * US_PER_S
        end = begin + draw(st.integers(1, 20)) * US_PER_S
        bookings.append(Booking(link.id, begin, end, draw(st.sampled_from([30, 60, 90, 120, 210, 390])) * MBIT))
    return Network(links, bookings)


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    seconds = st.one_of(st.integers(1, 60), st.floats(0.3, 60)).map(lambda s: int(s * US_PER_S))
    not_before = draw(st.sampled_from([None, None, START_US + 5 * US_PER_S, START_US + 40 * US_PER_S]))
    rate_max = draw(st.sampled_from([None, None, 30 * MBIT, 70 * MBIT, 250 * MBIT]))
    rate_min = draw(st.sampled_from([None, None, 20 * MBIT, 60 * MBIT, 300 * MBIT]))
    if rate_min is not None and rate_max is not None and rate_min > rate_max:
        rate_min = None
    kind = draw(st.sampled_from(["reserve", "reserve", "managed", "class 2"]))
    return make_ask(
        "tr_1",
        *(("h1", "h2") if kind == "managed" else ("A", "B")),
        volume_bytes=None if kind == "class 2" else draw(st.integers(1, 2 * 10**9)),
        duration_us=draw(seconds) if kind == "class 2" else None,
        not_before_us=not_before or 0,
        deadline_us=draw(st.one_of(st.none(), seconds.map(lambda s: (not_before or START_US) + s + 2 * US_PER_S))),
        rate_max_bps=rate_max,
        rate_min_bps=rate_min,
        mode=Mode.MANAGED if kind == "managed" else Mode.RESERVE,
        payload=FILE if kind == "managed" else None,
    )


def said(offer: dict[str, Any]) -> dict[str, Any]:
    """The change of the ask that takes the offer."""
    word, name, _ = WORDS[offer["kind"]]
    value = offer[word]
    if word == "deadline":
        return {name: parse_time(value)}
    return {name: int(value * US_PER_S) if word == "duration_s" else value}


@cases(250)
@given(
    network=networks(), ask=asks(), planner=st.sampled_from(["vbls", "vbls", "fbls", "spaghetti", "alap"]), share=st.floats(0, 1)
)
def test_what_is_offered_can_be_had(network: Network, ask: Ask, planner: str, share: float) -> None:
    ask = ask.changed(planner=planner)
    answer = network.ask(ask, START_US)
    event("admitted" if isinstance(answer, Transfer) else answer.code)
    if isinstance(answer, Transfer) or answer.code != "infeasible":
        return
    for offer in answer.more["counter_offers"]:
        event(offer["kind"])
        until = parse_time(offer["valid_until"])
        assert START_US < until <= START_US + 30 * US_PER_S
        if offer["kind"] == "earliest_finish":
            exact = network.ask(ask.changed(deadline_us=None), START_US)
            assert isinstance(exact, Transfer) and exact.finish_us == parse_time(offer["finish"])
            continue
        times = {START_US, until}
        if planner in ("vbls", "fbls"):  # the sooner it is asked, the more there is to choose from
            times.add(START_US + int(share * (until - START_US)))
        for now in times:
            had = network.ask(ask.changed(**said(offer)), now)
            assert isinstance(had, Transfer), (offer, now, had)


@cases(150)
@given(network=networks(), ask=asks())
def test_nothing_better_could_be_offered(network: Network, ask: Ask) -> None:
    """Of VBLS, whose offers are exact: one byte, microsecond or bit/s more is refused when the offer ends."""
    answer = network.ask(ask, START_US)
    if isinstance(answer, Transfer) or answer.code != "infeasible":
        return
    for offer in answer.more["counter_offers"]:
        if offer["kind"] == "earliest_finish":
            continue
        _, name, step = WORDS[offer["kind"]]
        (value,) = said(offer).values()
        better = ask.changed(**{name: value + step})
        if offer["kind"] == "smallest_rate" and (value - 1 < (ask.spec.rate_min_bps or 1)):
            continue
        assert isinstance(network.ask(better, parse_time(offer["valid_until"])), Problem), offer


def test_margin_and_lead_are_brought_back() -> None:
    """A managed transfer of which the rate is too low: the offered rate carries the margin that grows with it."""
    network = Network([Link("L1", "A", "B", 10**9)], [])
    ask = make_ask("tr_1", "h1", "h2", 125_000_000, rate_max_bps=100 * MBIT, deadline_us=START_US + 6 * US_PER_S,
              mode=Mode.MANAGED, payload=FILE)  # fmt: skip
    answer = network.ask(ask, START_US)
    assert isinstance(answer, Problem)
    offers = {offer["kind"]: offer for offer in answer.more["counter_offers"]}
    assert {"earliest_finish", "smallest_deadline", "largest_volume", "smallest_rate"} <= offers.keys()
    assert offers["largest_volume"]["volume_bytes"] < 125_000_000 and offers["smallest_rate"]["rate_max_bps"] > 200 * MBIT


@pytest.mark.parametrize("planner", sorted(name for name, planner in PLANNERS.items() if planner.traits.books))
def test_a_hundred_refusals_take_no_time_to_speak_of(planner: str) -> None:
    """What a batch of refusals costs everybody who waits; the bound is generous."""
    import time

    network = Network([Link("L1", "A", "B", 10**9)], [Booking("L1", START_US, START_US + 100 * US_PER_S, 10**9)])
    asks = [make_ask(f"tr_{n}", "A", "B", 10**9, deadline_us=START_US + 50 * US_PER_S, planner=planner) for n in range(100)]
    network.ask(asks[0], START_US)
    batch = Batch(network.replica, dict.fromkeys(network.replica.calendars, 0), {}, START_US)
    begin = time.process_time()
    answers = Admit(asks, "me", POLICY).decide(batch)
    took = time.process_time() - begin
    assert all(isinstance(answer, Problem) for answer in answers)
    assert took < 3, took
