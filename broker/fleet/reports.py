# SPDX-License-Identifier: Apache-2.0
"""Reports of agents, each taken once by (transfer, host, sequence), in any order.

Progress is written directly to the transfer's row. A report that changes the booking goes through the desk, whose commands are idempotent
by state; only then does it count as taken, so a broker that dies in between hears it again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, assert_never

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.capabilities import Capabilities
from broker.core.reason import Reason
from broker.core.report import ReportDetail, ReportKind
from broker.core.transfer import Action, Mode
from broker.core.transfer_spec import OnTimeout
from broker.desk.ground import start_signals
from broker.desk.ground.command import Command
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.desk.lifecycle.hearing import Hear
from broker.desk.lifecycle.modify import Rebook
from broker.desk.lifecycle.transitions import End, Start, Unchain
from broker.desk.service.desk import Desk
from broker.store import bookings, events, hosts, transfers
from broker.store import reports as stored_reports
from broker.store.events import Event
from broker.store.reports import Report
from broker.store.session import Database
from broker.store.transfers import Transfer

Refusal = tuple[str, str]  # code, and in words

# What comes after the end changes nothing any more, and is worth knowing.
_ALSO_LATE = frozenset({ReportKind.SENT, ReportKind.SIGNAL})


@dataclass(frozen=True, slots=True)
class Taken:
    """Which reports an agent may forget: `accepted`, and `ignored` with (code, detail) why they changed nothing."""

    accepted: list[Report]
    ignored: list[tuple[Report, str, str]]
    revision: int


async def take(
    database: Database,
    desk: Desk,
    host: str,
    reports: Sequence[Report],
    now_us: int,
    about: dict[str, Any],
    policy: Policy,
    *,
    complete: bool = False,
) -> Taken:
    """Take the reports of one POST. `about` is what the agent says of itself (columns of `hosts`); `complete`: it has nothing else to tell.

    Raises Problem for an unknown host.
    """
    accepted: list[Report] = []
    ignored: list[tuple[Report, str, str]] = []
    async with database.transaction() as connection:
        if await _says_something_new(connection, host, about):
            await bookings.bump_topology(connection)  # so that every desk hears of it; before the host, which is the desks' order
        if await hosts.mark_seen(connection, host, now_us, **about) is None:
            raise Problem("not-found", f"host {host!r} is not enrolled")
        found = await transfers.get_many(connection, {report.transfer_id for report in reports})
        known = await stored_reports.find_known(connection, host, [(report.transfer_id, report.sequence) for report in reports])
        acceptable = []
        for report in reports:
            if (report.transfer_id, report.sequence) in known:
                acceptable.append(report)
                continue
            refusal = _find_refusal(report, host, found.get(report.transfer_id))
            if refusal is None:
                acceptable.append(report)
            else:
                ignored.append((report, *refusal))
    outcomes = await _carry_out(desk, _by_transfer(acceptable), found, known, policy)
    for report, refusal in outcomes:
        if refusal is None:
            accepted.append(report)
        else:
            ignored.append((report, *refusal))
    async with database.transaction() as connection:
        new = await stored_reports.insert(connection, accepted)
        signals = [
            report for report in accepted if report.kind is ReportKind.SIGNAL and (report.transfer_id, report.sequence) in new
        ]
        await events.append(connection, [_make_event(report) for report in signals])
        await stored_reports.note_progress(
            connection, _pick_newest([r for r in accepted if r.kind in (ReportKind.PROGRESS, ReportKind.STARTED)]), now_us
        )
        if complete:  # last: the order of locks is that of the desks, transfers before hosts
            await hosts.mark_complete(connection, host, now_us)
        host_now = await hosts.get(connection, host)
    return Taken(accepted, ignored, host_now.revision if host_now else 0)


def _by_transfer(reports: Sequence[Report]) -> list[list[Report]]:
    """The reports on each transfer, in the order in which they were made."""
    ordered = sorted(reports, key=lambda report: (report.transfer_id, report.sequence))
    return [list(same) for _, same in groupby(ordered, key=lambda report: report.transfer_id)]


def _pick_newest(reports: Sequence[Report]) -> list[Report]:
    """The last report on each transfer."""
    return [same[-1] for same in _by_transfer(reports)]


async def _carry_out(
    desk: Desk, groups: Sequence[Sequence[Report]], found: Mapping[str, Transfer], known: set[tuple[str, int]], policy: Policy
) -> list[tuple[Report, Refusal | None]]:
    """Each report with why it changes nothing, or None. Those on different transfers are handed to the desk together: a thousand small
    files that end at once are a few transactions, not a thousand. `known`: (transfer, sequence) of what was taken before.
    """

    async def one_after_the_other(reports: Sequence[Report]) -> list[tuple[Report, Refusal | None]]:
        outcomes: list[tuple[Report, Refusal | None]] = []
        seen: set[int] = set()
        for report in reports:
            if report.sequence in seen or (report.transfer_id, report.sequence) in known:
                outcomes.append((report, ("duplicate", "taken before")))
                continue
            refusal = await _carry_out_one(desk, report, found[report.transfer_id], policy)
            if refusal is None:
                seen.add(report.sequence)
            outcomes.append((report, refusal))
        return outcomes

    together = await asyncio.gather(*(one_after_the_other(group) for group in groups), return_exceptions=True)
    outcomes: list[tuple[Report, Refusal | None]] = []
    for result in together:  # all have ended; what failed is told after that
        if isinstance(result, BaseException):
            raise result
        outcomes += result
    return outcomes


def _actor(report: Report) -> str:
    return f"agent {report.host}"


def _make_event(report: Report) -> Event:
    """What a start signal did, in the history of the transfer that the host sends."""
    said = {"code": report.detail.code, "detail": report.detail.detail, "at_us": report.at_us}
    return Event(report.received_us, _actor(report), "transfer.signal", "transfer", report.transfer_id, None, said)


async def _says_something_new(connection: AsyncConnection, host: str, about: dict[str, Any]) -> bool:
    """Can the host do more, or less, of what admission looks at?"""
    if "capabilities" not in about:
        return False
    before = await hosts.get(connection, host)
    return before is not None and before.capabilities.differs(Capabilities.parse(about["capabilities"]))


def _find_refusal(report: Report, host: str, transfer: Transfer | None) -> Refusal | None:
    if transfer is None:
        return "unknown_transfer", f"there is no transfer {report.transfer_id}"
    if host not in _hosts_of(transfer):
        return "not_yours", "this host has no part in the transfer"
    speaker = _speaker(report.kind, transfer)
    if speaker is not None and host != speaker:
        return "not_yours", f"{report.kind} is for the {'sender' if speaker == transfer.spec.source else 'receiver'} to say"
    if report.kind is ReportKind.SIGNAL and not report.detail.code:
        return "code_missing", "a signal report says in `code` what happened"
    if not transfer.live and not transfer.assumed and report.kind not in _ALSO_LATE:
        return "ended", f"the transfer is {transfer.state}"
    volume = transfer.spec.volume_bytes
    if report.kind is ReportKind.FINISHED and transfer.mode is Mode.MANAGED and report.bytes != volume:
        return "wrong_volume", f"{report.bytes} bytes are not the {volume} that were booked"
    return None


def _hosts_of(transfer: Transfer) -> tuple[str, ...]:
    """Those whose agents have something to do in it."""
    match transfer.mode:
        case Mode.RESERVE:
            return ()
        case Mode.MANAGED:
            return (transfer.spec.source, transfer.spec.destination)
        case Mode.WRAPPED | Mode.OBSERVED:
            return (transfer.spec.source,)
        case _:
            assert_never(transfer.mode)


def _speaker(kind: ReportKind, transfer: Transfer) -> str | None:
    """The only host that may say this; None: any that has a part in the transfer."""
    match kind:
        case ReportKind.STARTED | ReportKind.SHORTFALL | ReportKind.SENT | ReportKind.SIGNAL:
            return transfer.spec.source
        case ReportKind.FINISHED:
            return transfer.spec.destination if transfer.mode is Mode.MANAGED else None
        case ReportKind.PROGRESS | ReportKind.FAILED:
            return None
        case _:
            assert_never(kind)


# An agent catches up by 0.5 % and paces to about 0.2 %: a rate this far below was not limited by the booking.
_CLEARLY_BELOW = 0.95


def _achieved(report: Report) -> int:
    """The rate that the hosts reach, if that is what holds the transfer back; 0 otherwise."""
    rate, applied = report.rate_bps or 0, report.applied_rate_bps or 0
    return rate if 0 < rate < applied * _CLEARLY_BELOW else 0


def _begins(transfer: Transfer, detail: ReportDetail) -> bool:
    """Does a signal's report say that a successor begins?"""
    return detail.code == "go_received" or (
        detail.code == "timeout" and start_signals.signal_of(transfer).on_timeout is OnTimeout.START
    )


# They say themselves what became of the transfer; all else says that it goes on.
_ENDS = frozenset({ReportKind.FINISHED, ReportKind.FAILED})


def _says_it_lives(report: Report, transfer: Transfer) -> bool:
    """Is it news that its agents can be heard? Of one that is under way, only the sender's word says by which plan it goes."""
    if report.kind in _ENDS or report.kind in _ALSO_LATE:
        return False
    return transfer.assumed or (transfer.unheard_us is not None and report.host == transfer.spec.source)


async def _carry_out_one(desk: Desk, report: Report, transfer: Transfer, policy: Policy) -> Refusal | None:
    """Carry out what one report says beside progress; (code, detail) when it can change nothing."""
    try:
        if _says_it_lives(report, transfer):
            await desk.submit(Hear(transfer.id, _actor(report)))
        if (command := _make_command(report, transfer, policy)) is not None:
            await desk.submit(command)
    except Problem as problem:
        return problem.code.replace("-", "_"), problem.detail
    return None


def _make_command(report: Report, transfer: Transfer, policy: Policy) -> Command[Transfer] | None:
    """What the desk does about the report; None: nothing."""
    actor, detail = _actor(report), report.detail
    match report.kind:
        case ReportKind.STARTED:
            return Start(transfer.id, actor, at_us=report.at_us)
        case ReportKind.SHORTFALL:
            return Rebook(transfer.id, actor, safe_bytes=report.bytes or 0, achieved_bps=_achieved(report), policy=policy)
        case ReportKind.FINISHED if transfer.mode is Mode.MANAGED:
            return End(transfer.id, actor, action=Action.FINISH, at_us=report.at_us, checksum=detail.checksum)
        case ReportKind.FINISHED:
            # The volume was a statement made before; the bytes counted now are the true ones.
            return End(transfer.id, actor, action=Action.FINISH, at_us=report.at_us, bytes_done=report.bytes or 0)
        case ReportKind.FAILED:
            reason = Reason(detail.code or "internal", detail.detail or "the agent gave no reason", report.host)
            return End(transfer.id, actor, action=Action.FAIL, bytes_done=report.bytes, reason=reason)
        case ReportKind.SIGNAL if _begins(transfer, detail):
            return Unchain(transfer.id, actor, at_us=report.at_us)
        case ReportKind.SENT | ReportKind.SIGNAL | ReportKind.PROGRESS:
            return None
        case _:
            assert_never(report.kind)
