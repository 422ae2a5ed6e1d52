# SPDX-License-Identifier: Apache-2.0
"""Random histories in which what becomes free is pulled forward."""

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from broker.core.transfer import LIVE, State
from broker.desk.rebalance.pull_forward import Pull, Puller, PullForward, eager_planners
from broker.store import pull_forward as waiters
from broker.store.transfers import Transfer, get_many
from tests.desk.machine import Broker
from tests.desk.world import POLICY

LEAD_US = 1_500_000  # agents hear of it in time


class Pulling(Broker):
    """The histories of `test_model`, with pulling forward in between, on what both desks free."""

    def __init__(self) -> None:
        super().__init__()
        self.pullers = [Puller(self.world.look, self.clock, pull) for pull in (Pull.WAITING, Pull.ALL)]
        for desk, puller in zip(self.world.desks, self.pullers, strict=True):
            desk._freed = puller.freed

    @precondition(lambda self: self.ids)
    @rule(desk=st.integers(0, 1))
    def pull(self, desk: int) -> None:
        before = self.transfers()
        number = self.run(self.pullers[desk].pull_freed(self.world.desks[desk], POLICY))
        after = self.transfers()
        changed = [name for name, was in before.items() if was != after[name]]
        assert bool(number) == bool(changed)
        for name in changed:
            was, now = before[name], after[name]
            assert now.finish_us < was.finish_us
            assert (now.promised_us, now.spec.deadline_us, now.spec.not_before_us) == (
                was.promised_us,
                was.spec.deadline_us,
                was.spec.not_before_us,
            )
            assert now.spec.deadline_us is None or now.finish_us <= now.spec.deadline_us
            assert now.segments[0].begin_us >= min(was.segments[0].begin_us, now.spec.not_before_us) or was.state is State.ACTIVE
            assert was.state in (State.RESERVED, State.ACTIVE)
            assert not was.paused and was.spec.planner in eager_planners()
            assert desk == 1 or was.state is State.RESERVED

    @precondition(lambda self: self.ids)
    @rule()
    def nobody_who_could_gain_is_left_out_by_the_query(self) -> None:
        async def names() -> set[str]:
            after = self.clock.now_us + LEAD_US
            async with self.world.look.transaction() as connection:
                between = await waiters.find_ends(connection, eager_planners(), after, begun=False)
                found = await waiters.find_candidates(
                    connection, between, [], eager_planners(), after, waiters.FIRST, 1000, begun=False
                )
            return {place.id for place in found}

        found = self.run(names())
        for name, transfer in self.transfers().items():
            if name not in found and transfer.live:
                assert self.run(self.world.do(PullForward([name], POLICY))).transfer_ids == ()

    @invariant()
    def promises_hold(self) -> None:
        for transfer in self.transfers().values():
            if (
                transfer.state in LIVE
                and not transfer.paused
                and transfer.spec.deadline_us is not None
                and transfer.id not in self.unjudged
            ):
                assert transfer.finish_us is not None and transfer.finish_us <= transfer.spec.deadline_us

    def transfers(self) -> dict[str, Transfer]:
        async def read() -> dict[str, Transfer]:
            async with self.world.look.transaction() as connection:
                return await get_many(connection, self.ids)

        found: dict[str, Transfer] = self.run(read())
        return found
