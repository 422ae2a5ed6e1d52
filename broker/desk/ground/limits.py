# SPDX-License-Identifier: Apache-2.0
"""The limits of a token, checked where capacity is booked: in the batch's transaction, so that two requests cannot pass together.

The use of a token is known from the last transaction (`Replica.uses`); `Batch.write` adds to it and so notices if it was out of date. Admission
therefore pays for one statement, and two desks do not wait for each other before they write. No request is refused by a use that may be out of
date: `Doubted` begins anew with the use from the database. Limits do not apply to what the broker rebooks itself, since that is promised.
"""

from dataclasses import dataclass

from broker.core.allowance import GB_HOUR, Allowance, booked_ahead
from broker.core.units import US_PER_S, format_time
from broker.desk.ground.batch import Batch, Doubted
from broker.desk.ground.problems import Problem
from broker.store.transfers import Transfer


@dataclass(frozen=True, slots=True)
class Account:
    """On whose account something is booked: a token's id, and what it may have."""

    owner: str
    allowance: Allowance

    @property
    def counts(self) -> bool:
        """Does a limit hang on what the token has already?"""
        return self.allowance.open_transfers is not None or self.allowance.booked_gb_hours is not None


NOBODY = Account("", Allowance())


def refuse_wish(
    account: Account, now_us: int, *, priority: int | None = None, not_before_us: int | None = None, deadline_us: int | None = None
) -> None:
    """Raises Problem if the request exceeds what the token may ever ask for. None: not asked."""
    most = account.allowance.priority
    if most is not None and priority is not None and priority > most:
        raise _beyond("priority", "priority", f"{priority} is above {most}, the highest that this token may ask for", most)
    if (until_us := _horizon(account, now_us)) is None:
        return
    for name, at_us in (("not_before", not_before_us), ("deadline", deadline_us)):
        if at_us is not None and at_us > until_us:
            raise _too_far(account, name, at_us, until_us)


def refuse_stranger(account: Account, batch: Batch, after: str | None) -> None:
    """Raises Problem if this token already has the allowed number of successors behind another token's transfer."""
    most = account.allowance.successors
    predecessor = None if after is None else batch.transfers.get(after)
    if most is None or predecessor is None or predecessor.owner == account.owner:
        return
    used = sum(successor.owner == account.owner for successor in batch.successors(predecessor.id))
    if used >= most:
        detail = f"{after} was booked with another token; {used} of at most {most} transfers of this one wait for it"
        raise _beyond("successors", "after", f"{detail}. Whoever books behind others needs the scope operate", most, "forbidden")


def refuse_more(account: Account, batch: Batch, pending: int = 0) -> None:
    """Raises Problem where the token has as many transfers as it may; `pending`: more that this command is about to book."""
    most = account.allowance.open_transfers
    if most is None:
        return
    batch.checked[account.owner] = account.allowance
    used = batch.use(account.owner).open + pending
    if used >= most:
        _doubt(account, batch)
        way_out = "wait until some have ended, cancel some, or ask an administrator (bwb token set --max-open)"
        raise _exceeded(
            "open_transfers", f"this token has {used} open transfers, at most {most} are allowed; {way_out}", most, used
        )


def refuse_plan(account: Account, batch: Batch, booked_bytes: int, finish_us: int, pending: int = 0) -> None:
    """Raises Problem where a new booking would be too much, or end too late."""
    _refuse_end(account, batch, finish_us)
    _refuse_volume(account, batch, booked_ahead(booked_bytes, batch.now_us, finish_us), pending)


def refuse_replan(account: Account, batch: Batch, transfer: Transfer, booked_bytes: int, finish_us: int) -> None:
    """The same for a new plan of an existing booking: only an increase can exceed the limits."""
    if transfer.finish_us is None or finish_us > transfer.finish_us or transfer.paused:
        _refuse_end(account, batch, finish_us)
    if transfer.owner == account.owner:
        more = booked_ahead(booked_bytes, transfer.created_us, finish_us) - transfer.use.byte_us
        if more > 0:
            _refuse_volume(account, batch, more, 0)


def _refuse_end(account: Account, batch: Batch, finish_us: int) -> None:
    until_us = _horizon(account, batch.now_us)
    if until_us is not None and finish_us > until_us:
        raise _too_far(account, "volume_bytes", finish_us, until_us)


def _refuse_volume(account: Account, batch: Batch, more: int, pending: int) -> None:
    most = account.allowance.booked_gb_hours
    if most is None:
        return
    batch.checked[account.owner] = account.allowance
    used = batch.use(account.owner).byte_us + pending
    if used + more > most * GB_HOUR:
        _doubt(account, batch)
        detail = f"this would count {_hours(more)} GB x h ahead; the token has {_hours(used)} booked and may have {most}"
        way_out = "book smaller or nearer, cancel some, or ask an administrator (bwb token set --max-gb-hours)"
        raise _exceeded("booked_gb_hours", f"{detail}; {way_out}", most, round(used / GB_HOUR, 3))


def _doubt(account: Account, batch: Batch) -> None:
    """Before anybody is refused by it: what the token has must have been read in this transaction."""
    batch.replica.watched.add(account.owner)
    if account.owner not in batch.counted:
        raise Doubted(account.owner)


def _horizon(account: Account, now_us: int) -> int | None:
    seconds = account.allowance.horizon_s
    return None if seconds is None else now_us + seconds * US_PER_S


def _hours(byte_us: int) -> str:
    return f"{byte_us / GB_HOUR:.3g}"


def _too_far(account: Account, field: str, at_us: int, until_us: int) -> Problem:
    most = account.allowance.horizon_s
    assert most is not None
    what = f"it would end at {format_time(at_us)}" if field == "volume_bytes" else format_time(at_us)
    detail = f"{what} lies beyond {format_time(until_us)}, until when this token may book ({most} s ahead)"
    return _beyond("horizon_s", field, detail, most)


def _beyond(limit: str, field: str, detail: str, most: int, code: str = "beyond-limits") -> Problem:
    """What no waiting helps against."""
    problem = Problem.of_field(field, f"{detail}; an administrator may change that (bwb token set)", code)
    problem.more["limit"] = {"name": limit, "value": most}
    return problem


def _exceeded(limit: str, detail: str, most: int, used: float) -> Problem:
    """What ends when some of it has ended."""
    return Problem("limit-exceeded", detail, {"limit": {"name": limit, "value": most, "used": used}})


def refuse_jobs(account: Account, used: int) -> None:
    """Raises Problem where the token has as many long jobs as it may."""
    most = account.allowance.jobs
    if most is not None and used >= most:
        way_out = "wait until one has ended, cancel one, or ask an administrator (bwb token set --max-jobs)"
        raise _exceeded("jobs", f"{used} jobs of this token wait or run, at most {most} may; {way_out}", most, used)
