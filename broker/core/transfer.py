# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a transfer, as a table. docs/user.md shows the same table; a test keeps them equal."""

from enum import StrEnum


class State(StrEnum):
    """The state of a transfer in its life cycle."""

    HELD = "HELD"  # booked until hold_until, waiting for commit
    RESERVED = "RESERVED"  # booked, not yet begun
    ACTIVE = "ACTIVE"  # moving
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    EXPIRED = "EXPIRED"  # a hold that was not committed, or a transfer that the agent never fetched


class Action(StrEnum):
    """An event that changes the state of a transfer."""

    COMMIT = "commit"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    EXPIRE = "expire"
    HEAR = "hear"  # its agents report again after a presumed loss


class Mode(StrEnum):
    """How the data is moved."""

    RESERVE = "reserve"  # booked only; the caller moves the data
    MANAGED = "managed"  # the agents move the file
    WRAPPED = "wrapped"  # any mover, paced externally
    OBSERVED = "observed"  # only classified and counted


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
    (State.FAILED, Action.HEAR): State.ACTIVE,  # only where the desk assumed the end because no agent reported
}

LIVE = frozenset({State.HELD, State.RESERVED, State.ACTIVE})  # these hold capacity
ENDED = frozenset(State) - LIVE


class IllegalTransition(Exception):
    """The transition table has no such row."""

    def __init__(self, state: State, action: Action) -> None:
        self.state, self.action = state, action
        super().__init__(f"a transfer that is {state} cannot {action}")


def after(state: State, action: Action) -> State:
    """The state after `action`. Raises IllegalTransition if the table has no such row."""
    try:
        return TRANSITIONS[state, action]
    except KeyError:
        raise IllegalTransition(state, action) from None
