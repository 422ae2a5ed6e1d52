# SPDX-License-Identifier: Apache-2.0
"""Records as JSON. Built by hand and written by orjson: at admission rate a model per answer would cost more than the admission."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from fastapi import Response

from broker.api import request_ids
from broker.api.statuses import problem_document, status_of
from broker.api.transfer_fields import show_spec
from broker.core.allowance import GB_HOUR, LIMITS, Allowance, Use
from broker.core.link_document import document_of
from broker.core.plan import Plan
from broker.core.reason import Reason
from broker.core.segments import Segment, total_rates
from broker.core.transfer import State
from broker.core.transfer_spec import SignalKind
from broker.core.units import US_PER_S, format_time
from broker.desk.ground.command import Foreseen, Moved
from broker.desk.ground.problems import Problem
from broker.fleet.clocks import Limits, find_trouble
from broker.fleet.liveness import is_up
from broker.store.access import EnrolmentToken, Token
from broker.store.bookings import LinkRecord, WindowRecord
from broker.store.events import StoredEvent
from broker.store.host_loads import HostLoad
from broker.store.hosts import Host
from broker.store.transfers import Transfer

Json = dict[str, Any]


def answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`content` as JSON."""
    return Response(orjson.dumps(content), status, headers, "application/json")


def problem_answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal as problem+json."""
    document = problem_document(problem)
    if request_id := request_ids.current():
        document["request_id"] = request_id
    return Response(orjson.dumps(document), status_of(problem), headers, "application/problem+json")


def time_or_none(time_us: int | None) -> str | None:
    """RFC 3339; None for None."""
    return None if time_us is None else format_time(time_us)


def transfer(record: Transfer, links: Mapping[str, LinkRecord]) -> Json:
    """A transfer with its plan."""
    return {
        "id": record.id,
        "state": record.state,
        "mode": record.mode,
        **show_spec(record.spec),
        "booked_bytes": record.booked_bytes,
        "plan": plan(record.spec.planner, record.segments, links),
        "promised_finish": time_or_none(record.promised_us),
        "hold_until": time_or_none(record.hold_until_us),
        "paused": record.paused,
        "bytes_done": record.bytes_done,
        "measured_bps": record.measured_bps,
        "actual_start": time_or_none(record.actual_start_us),
        "actual_finish": time_or_none(record.actual_finish_us),
        "checksum": record.checksum,
        "unheard_since": time_or_none(record.unheard_us),
        "assumed": record.assumed,
        "waiting_reason": waiting_reason(record),
        "owner": record.owner,
        "revision": record.revision,
        "created": format_time(record.created_us),
        "updated": format_time(record.updated_us),
    }


def plan(planner: str, segments: Iterable[Segment], links: Mapping[str, LinkRecord]) -> Json:
    """A plan with its metrics."""
    segments = tuple(segments)
    if not segments:
        metrics: Json = {"makespan_s": None, "mean_rate_bps": None, "congestion_factor": None}
        return {"planner": planner, "start": None, "finish": None, "segments": [], "paths": [], "metrics": metrics}
    begin, end = segments[0].begin_us, max([segment.end_us for segment in segments])
    metrics = {
        "makespan_s": (end - begin) / US_PER_S,
        "mean_rate_bps": sum(segment.microbits for segment in segments) // (end - begin),
        "congestion_factor": _largest_share(segments, links),
    }
    return {
        "planner": planner,
        "start": format_time(begin),
        "finish": format_time(end),
        "segments": [segment_row(segment) for segment in segments],
        "paths": list(dict.fromkeys([segment.path for segment in segments])),
        "metrics": metrics,
    }


def segment_row(segment: Segment) -> Json:
    """A row of a plan."""
    begin, end, rate, path = segment
    return {"begin": format_time(begin), "end": format_time(end), "rate_bps": rate, "path": path}


def _largest_share(segments: tuple[Segment, ...], links: Mapping[str, LinkRecord]) -> float:
    """Of the capacity of any link, the most that these segments alone take."""
    shares = [
        rate / capacity
        for link_id, rate in _peaks(segments).items()
        if (record := links.get(link_id)) is not None and (capacity := record.link.payload_bps(record.link.capacity_bps))
    ]
    return round(max(shares, default=0.0), 6)


def _peaks(segments: tuple[Segment, ...]) -> dict[str, int]:
    """The highest rate on each link. What several paths carry at once adds up where they meet."""
    first = segments[0].path
    if all(segment.path == first for segment in segments):
        highest = max([segment.rate_bps for segment in segments])
        return dict.fromkeys(first, highest)
    on_link: dict[str, list[Segment]] = {}
    for segment in segments:
        for link_id in segment.path:
            on_link.setdefault(link_id, []).append(segment)
    return {link_id: max([rate for _, _, rate in total_rates(there)]) for link_id, there in on_link.items()}


def reason(said: Reason) -> Json:
    """As in `waiting_reason`."""
    return {"code": said.code, "detail": said.detail, "limited_by": said.limited_by, "until": time_or_none(said.until_us)}


def waiting_reason(record: Transfer) -> Json | None:
    """Why it is not moving, or slower than it was promised; None where there is nothing to explain."""
    if record.live and record.unheard_us is not None:
        return {
            "code": "unheard",
            "detail": "nothing is heard of it from its agents; it goes on by the plan that they have, and keeps what is booked",
            "limited_by": record.spec.source,
            "until": None,
        }
    if record.reason is not None:
        return reason(record.reason)
    if record.state is State.HELD:
        return {"code": "held", "detail": "waits for its commit", "limited_by": None, "until": time_or_none(record.hold_until_us)}
    if record.state is State.RESERVED and record.spec.after is not None and record.released_us is None and _signalled(record):
        return {
            "code": "waiting_for_predecessor",
            "detail": f"begins when {record.spec.after} has ended",
            "limited_by": record.spec.after,
            "until": time_or_none(record.start_us),
        }
    if record.state is State.RESERVED and record.start_us is not None and record.start_us > record.updated_us:
        return {
            "code": "scheduled",
            "detail": "its booked time has not come",
            "limited_by": None,
            "until": format_time(record.start_us),
        }
    return None


def _signalled(record: Transfer) -> bool:
    return record.spec.signal is None or record.spec.signal.kind is not SignalKind.CLOCK


def batch_item(result: Transfer | Problem, links: Mapping[str, LinkRecord]) -> Json:
    """What became of an item of a batch."""
    if isinstance(result, Problem):
        return {"status": status_of(result), "transfer": None, "problem": problem_document(result)}
    return {"status": 201, "transfer": transfer(result, links), "problem": None}


def quote(planner: str, books: bool, result: Plan | Problem, links: Mapping[str, LinkRecord]) -> Json:
    """What one planner would answer."""
    if isinstance(result, Problem):
        return {"planner": planner, "books": books, "admitted": False, "plan": None, "problem": problem_document(result)}
    shown = plan(planner, result.segments, links)
    return {"planner": planner, "books": books, "admitted": True, "plan": shown, "problem": None}


def preview(foreseen: Foreseen[Transfer], freed: Iterable[Segment], links: Mapping[str, LinkRecord]) -> Json:
    """What a command would do."""
    return {
        **transfer(foreseen.result, links),
        "preview": True,
        "freed": [segment_row(segment) for segment in freed],
        "moved": [_moved(one) for one in foreseen.moved],
    }


def _moved(one: Moved) -> Json:
    record = one.transfer
    late = record.promised_us is not None and (record.finish_us is None or record.finish_us > record.promised_us)
    return {
        "id": record.id,
        "label": record.spec.label,
        "source": record.spec.source,
        "destination": record.spec.destination,
        "promised_finish": time_or_none(record.promised_us),
        "finish_before": time_or_none(one.finish_before_us),
        "finish": time_or_none(record.finish_us),
        "broken": late,
    }


def link(record: LinkRecord, reverse: str | None) -> Json:
    """`reverse` is the link back between the same two nodes."""
    return {
        **document_of(record.link),
        "windows": [window(item) for item in record.windows],
        "reverse": reverse,
        "host": record.host,
        "version": record.version,
        "revision": record.revision,
    }


def window(record: WindowRecord) -> Json:
    """A window of a link."""
    return {
        "id": record.id,
        "begin": format_time(record.begin_us),
        "end": format_time(record.end_us),
        "bps": record.bps,
        "kind": record.kind,
        "reason": record.reason,
    }


def host(record: Host, now_us: int, limits: Limits, load: HostLoad) -> Json:
    """A host, its agent and its load."""
    return {
        "name": record.name,
        "node": record.node,
        "nic_bps": record.nic_bps,
        "data_address": record.data_address,
        "tls": record.tls_fingerprint is not None,
        "agent_version": record.agent_version,
        "capabilities": record.capabilities.document,
        "clock": None if record.clock is None else _clock(record.clock, now_us, limits),
        "drained": record.drained,
        "up": is_up(record, now_us, limits.silence_us),
        "state": _liveness(record, now_us, limits),
        "revision": record.revision,
        "fetched_revision": record.fetched_revision,
        "enrolled": format_time(record.enrolled_us),
        "last_seen": time_or_none(record.last_seen_us),
        **load._asdict(),
    }


def _liveness(record: Host, now_us: int, limits: Limits) -> str:
    """The liveness that the overview counts; there, stopped hosts count as down."""
    if record.goodbye_us is not None:
        return "stopped"
    if not is_up(record, now_us, limits.silence_us):
        return "down"
    return "up" if is_up(record, now_us, limits.silence_us // 2) else "late"


def _clock(said: Json, now_us: int, limits: Limits) -> Json:
    why = find_trouble(said, now_us, limits)
    shown = {name: said.get(name) for name in ("offset_us", "error_us", "adjtimex_error_us", "synchronised", "last_step_us")}
    return {
        **shown,
        "steps": said.get("steps", 0),
        "at": time_or_none(said.get("at_us")),
        "good": why is None,
        "reason": why,
    }


def token(record: Token, secret: str | None = None) -> Json:
    """A token; with its secret where it was just made."""
    shown = {
        "id": record.id,
        "name": record.name,
        "scopes": list(record.scopes),
        "host": record.host,
        "created": format_time(record.created_us),
        "expires": time_or_none(record.expires_us),
        "revoked": time_or_none(record.revoked_us),
        "last_used": time_or_none(record.used_us),
    }
    return shown if secret is None else {**shown, "token": secret}


def limits(record: Token, allowance: Allowance, use: Use, jobs: int) -> Json:
    """What a token may have, and has."""
    used = {"open_transfers": use.open, "booked_gb_hours": round(use.byte_us / GB_HOUR, 3), "jobs": jobs}
    own = record.limits or {}
    return {name: {"value": getattr(allowance, name), "default": name not in own, "used": used.get(name)} for name in LIMITS}


def enrolment_token(record: EnrolmentToken, now_us: int) -> Json:
    """An enrolment token, and whether it can still be used."""
    if record.used_us is not None:
        state = "used"
    elif record.revoked_us is not None:
        state = "revoked"
    else:
        state = "open" if now_us < record.expires_us else "expired"
    return {
        "id": record.id,
        "host": record.host,
        "node": record.node,
        "nic_bps": record.nic_bps,
        "state": state,
        "created": format_time(record.created_us),
        "expires": format_time(record.expires_us),
        "used": time_or_none(record.used_us),
        "revoked": time_or_none(record.revoked_us),
    }


def named_in(found: Iterable[StoredEvent]) -> set[str]:
    """The ids in events that people may have names for."""
    return {name for stored in found for name in (stored.event.actor, stored.event.subject)}


def event(stored: StoredEvent, names: Mapping[str, str] = MappingProxyType({})) -> Json:
    """`names`: of the ids in it, as far as they were asked for."""
    position, what = stored
    return {
        "id": str(position),
        "at": format_time(what.at_us),
        "actor": what.actor,
        "actor_name": names.get(what.actor),
        "action": what.action,
        "subject_kind": what.subject_kind,
        "subject": what.subject,
        "subject_name": names.get(what.subject),
        "before": _times_readable(what.before),
        "after": _times_readable(what.after),
    }


def _times_readable(values: Json | None) -> Json | None:
    """`finish_us: 17...` is stored, `finish: 2026-...` is shown."""
    if values is None:
        return None
    shown: Json = {}
    for name, value in values.items():
        if name.endswith("_us") and name != "slot_us":
            shown[name.removesuffix("_us")] = time_or_none(value)
        elif isinstance(value, dict):
            shown[name] = _times_readable(value)
        else:
            shown[name] = value
    return shown
