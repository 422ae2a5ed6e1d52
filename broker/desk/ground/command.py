# SPDX-License-Identifier: Apache-2.0
"""The commands that the desk takes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.desk.ground.batch import Batch
from broker.desk.ground.limits import NOBODY, Account
from broker.desk.ground.replica import Replica
from broker.store.idempotency import Key
from broker.store.session import DatabaseAway
from broker.store.transfers import Transfer

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Command(Protocol[Result_co]):
    """One request to the desk. `decide` runs under the locks of everything named by `transfer_ids` and `links`.

    It changes things through the batch alone and raises Problem to refuse; what it booked until then is taken back.
    """

    key: Key | None
    planned_elsewhere: bool  # where that takes long; what it asks of planners does not depend on when that is, but for the begin
    decided: Any  # what came of it in earlier transactions, empty when there was none

    @property
    def account(self) -> Account:
        """The account that it books on, with its limits; NOBODY if no limit applies."""
        ...

    def transfer_ids(self) -> Iterable[str]:
        """Transfers that it reads or changes."""
        ...

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:
        """Links that it may book or release, beside those of the transfers it names."""
        ...

    def decide(self, batch: Batch) -> Result_co:
        """Decide, and book. Raises Problem to refuse."""

    def answer(self, result: Any) -> Any:
        """JSON to keep under the idempotency key."""
        ...

    async def recall(self, connection: AsyncConnection, answer: Any) -> Result_co:
        """The result again, from what `answer` kept."""
        ...

    def remainder(self, result: Any) -> "Command[Result_co] | None":
        """What of it is still to be decided after `result`, in another transaction; None when nothing is."""
        ...

    def cut_short(self, away: DatabaseAway) -> Result_co:
        """The result when the rest cannot be decided. Raises `away` where nothing was decided yet."""
        ...


class Alone(ABC, Generic[Result]):
    """A command that changes the network itself: it gets a transaction of its own, in which every link is locked.

    A class to inherit from: every command in the queue is asked whether it is one, and a protocol is slow to answer that.
    """

    __slots__ = ()

    @abstractmethod
    async def act(self, connection: AsyncConnection, batch: Batch) -> Result:
        """May query and write through the connection; raises Problem to refuse, which rolls everything back."""


@dataclass(frozen=True, slots=True)
class Preview(Generic[Result]):
    """What a command would answer now, without doing it: its result, or the Problem that it raises.

    It is decided under the same locks and leaves nothing behind: no booking, event or revision, and its idempotency key is not looked at.
    """

    command: Command[Result] | Alone[Result]


class Moved(NamedTuple):
    """Another transfer that a command would book anew, as it would be then."""

    transfer: Transfer
    finish_before_us: int | None


@dataclass(frozen=True, slots=True)
class Foreseen(Generic[Result]):
    """The answer of a command, and the other transfers that it would change."""

    result: Result
    moved: tuple[Moved, ...]


def list_moved(command: Command[Any], batch: Batch) -> tuple[Moved, ...]:
    """The other transfers that it changed, each with its finish before."""
    named = set(command.transfer_ids())
    before: dict[str, int | None] = {}
    for transfer_id, finish_us in batch.noted:
        before.setdefault(transfer_id, finish_us)
    return tuple(Moved(batch.transfers[name], finish_us) for name, finish_us in before.items() if name not in named)


class Unkeyed:
    """What commands without an idempotency key share, which are decided in one transaction."""

    planned_elsewhere: bool = False
    decided: Any = ()
    key: Key | None = None
    account: Account = NOBODY

    def links(self, replica: Replica, found: Mapping[str, Transfer]) -> set[str]:  # noqa: ARG002
        """None beside those of the transfers that it names."""
        return set()

    def answer(self, result: Any) -> Any:
        """Never asked for: there is no key to keep it under."""
        raise NotImplementedError

    async def recall(self, connection: AsyncConnection, answer: Any) -> Any:
        """Never asked for: nothing was kept."""
        raise NotImplementedError

    def remainder(self, result: Any) -> Any:  # noqa: ARG002
        """None: it is decided in one transaction."""
        return None

    def cut_short(self, away: DatabaseAway) -> Any:
        """Raises `away`: it is decided as a whole or not at all."""
        raise away
