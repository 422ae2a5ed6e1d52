# SPDX-License-Identifier: Apache-2.0
"""The life of a transfer, as a table. docs/user.md shows the same table; a test keeps them equal."""

from enum import StrEnum


class State(StrEnum):
    """Where a transfer is in its life."""

    HELD = "HELD"  # booked until hold_until, waiting for commit
    RESERVED = "RESERVED"  # booked, not yet begun
    ACTIVE = "ACTIVE"  # moving
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"  # a hold that was not committed, or what an agent never fetched


class Action(StrEnum):
    """What moves it from one state to another."""

    COMMIT = "commit"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    EXPIRE = "expire"
    HEAR = "hear"  # its agents are heard again after all


class Mode(StrEnum):
    """Who moves the data."""

    RESERVE = "reserve"  # booked only; the caller moves the data
    MANAGED = "managed"  # the agents move the file
    WRAPPED = "wrapped"  # any mover, paced from outside
    OBSERVED = "observed"  # only classed and counted


TRANSITIONS: dict[tuple[State, Action], State] = {
    (State.HELD, Action.COMMIT): State.RESERVED,
    (State.HELD, Action.CANCEL): State.CANCELED,
    (State.HELD, Action.EXPIRE): State.EXPIRED,
    (State.RESERVED, Action.START): State.ACTIVE,
    (State.RESERVED, Action.FINISH): State.FINISHED,
    (State.RESERVED, Action.FAIL): State.FAILED,
    (State.RESERVED, Action.CANCEL): State.CANCELED,
    (State.RESERVED, Action.EXPIRE): State.EXPIRED,
    (State.ACTIVE, Action.FINISH): State.FINISHED,
    (State.ACTIVE, Action.FAIL): State.FAILED,
    (State.ACTIVE, Action.CANCEL): State.CANCELED,
    (State.FAILED, Action.HEAR): State.ACTIVE,  # only where the end was assumed, because nobody was heard
}

LIVE = frozenset({State.HELD, State.RESERVED, State.ACTIVE})  # these hold capacity
ENDED = frozenset(State) - LIVE


class IllegalTransition(Exception):
    """The table of transitions has no such row."""

    def __init__(self, state: State, action: Action) -> None:
        self.state, self.action = state, action
        super().__init__(f"a transfer that is {state} cannot {action}")


def after(state: State, action: Action) -> State:
    """The state that `action` leads to. Raises IllegalTransition where the table has no such row."""
    try:
        return TRANSITIONS[state, action]
    except KeyError:
        raise IllegalTransition(state, action) from None
