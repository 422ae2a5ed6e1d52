# SPDX-License-Identifier: Apache-2.0
"""The state table: complete, and nothing beyond it."""

from itertools import product

import pytest

from broker.core.transfer import ENDED, LIVE, TRANSITIONS, Action, IllegalTransition, State, after

TABLE = """
            commit    start   finish    fail    cancel    expire   hear
HELD        RESERVED  -       -         -       CANCELED  EXPIRED  -
RESERVED    -         ACTIVE  FINISHED  FAILED  CANCELED  EXPIRED  -
ACTIVE      -         -       FINISHED  FAILED  CANCELED  -        -
FINISHED    -         -       -         -       -         -        -
FAILED      -         -       -         -       -         -        ACTIVE
CANCELED    -         -       -         -       -         -        -
EXPIRED     -         -       -         -       -         -        -
"""
HEADER, *ROWS = (line.split() for line in TABLE.strip().splitlines())
EXPECTED = {(row[0], action): target for row in ROWS for action, target in zip(HEADER, row[1:], strict=True) if target != "-"}


def test_the_table_names_every_state_and_action() -> None:
    assert {row[0] for row in ROWS} == set(State)
    assert set(HEADER) == set(Action)


@pytest.mark.parametrize(("state", "action"), list(product(State, Action)))
def test_every_pair_of_state_and_action(state: State, action: Action) -> None:
    if (state, action) in EXPECTED:
        assert after(state, action) == TRANSITIONS[state, action] == EXPECTED[state, action]
        return
    with pytest.raises(IllegalTransition, match=f"a transfer that is {state} cannot {action}") as caught:
        after(state, action)
    assert (caught.value.state, caught.value.action) == (state, action)


def test_only_live_states_lead_anywhere_and_every_end_can_be_reached() -> None:
    assert {State.HELD, State.RESERVED, State.ACTIVE} == LIVE
    assert set(State) == LIVE | ENDED
    assert not LIVE & ENDED
    # An end that was only assumed is taken back when somebody is heard.
    assert {state for state, action in TRANSITIONS if action is not Action.HEAR} == LIVE
    assert {target for target in TRANSITIONS.values() if target in ENDED} == ENDED
