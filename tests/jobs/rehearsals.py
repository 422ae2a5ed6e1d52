# SPDX-License-Identifier: Apache-2.0
"""Replicas of a busy desk and what may be asked of them."""

from random import Random
from typing import Any

from broker.core.network import Link
from broker.core.units import US_PER_S
from broker.desk.admission.ask import Ask
from broker.desk.ground.batch import LockedCalendars
from broker.desk.ground.policy import Policy
from broker.desk.ground.replica import Replica
from broker.store.bookings import LinkRecord
from tests.asks import make_ask
from tests.service import START_US

POLICY = Policy()
LINKS = [Link("L1", "A", "B", 10**9), Link("L2", "A", "C", 10**9), Link("L3", "C", "B", 4 * 10**8)]


def busy_replica(random: Random) -> Replica:
    replica = Replica()
    replica.adopt(1, {link.id: LinkRecord(link, None, 0, 1, ()) for link in LINKS})
    for calendar in replica.calendars.values():
        for _ in range(random.randrange(30)):
            begin = START_US + random.randrange(100) * US_PER_S
            calendar.book(begin, begin + random.randrange(1, 9) * US_PER_S, random.randrange(1, 10) * 10**7)
    replica.calendars = LockedCalendars(replica.calendars)
    return replica


def ask(random: Random, number: int, **more: Any) -> Ask:
    deadline = START_US + random.randrange(5, 60) * US_PER_S
    return make_ask(f"tr_{number}", "A", "B", random.randrange(10**7, 10**10), deadline_us=deadline, **more)
