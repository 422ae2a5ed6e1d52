# SPDX-License-Identifier: Apache-2.0
"""The output of `bwb transfer`: a transfer, its plan, quotes, a batch."""

from collections.abc import Callable
from typing import Any, cast

import typer

from broker.cli import context
from broker.cli.progress import against, name_of
from broker.cli.quantities import show_duration, show_rate, show_size
from broker.client.documents import BatchItem, Plan, Quote, Transfer, TransferPreview
from broker.core.units import US_PER_S


def show_transfer(found: Transfer) -> None:
    """Print a transfer's fields and its plan."""
    reason = found["waiting_reason"]
    finish = found["actual_finish"]
    payload = found["payload"] or {}
    path = payload.get("path")
    volume, duration = found["volume_bytes"], found["duration_s"]
    limits = {"at most": found["rate_max_bps"], "at least": found["rate_min_bps"]}
    context.show_fields(
        {
            "transfer": found["id"],
            "label": found["label"],
            "project": found["project"],
            "state": context.state_text(found),
            "why": reason and f"{reason['code']}: {reason['detail']}" + (f" (until {reason['until']})" if reason["until"] else ""),
            "from": found["source"],
            "to": found["destination"],
            "file": path and path + (f" -> {payload['destination_path']}" if payload.get("destination_path") else ""),
            "mode": found["mode"],
            "after": found["after"],
            "signal": signal_text(found["signal"]),
            "size": None if volume is None else f"{show_size(volume)} ({volume} bytes)",
            "holds for": None if duration is None else show_duration(round(duration * US_PER_S)),
            "done": f"{found['bytes_done']} bytes" if found["bytes_done"] else None,
            "rate": ", ".join(f"{word} {show_rate(rate)}" for word, rate in limits.items() if rate) or None,
            "deadline": found["deadline"],
            "priority": f"{found['priority']}, best effort" if found["best_effort"] else found["priority"] or None,
            "promised": found["promised_finish"],
            "finished" if found["state"] == "FINISHED" else "ended": finish and finish + _against_promise(found, finish),
            "unheard since": found["unheard_since"],
            "checksum": found["checksum"],
            "hold until": found["hold_until"] if found["state"] == "HELD" else None,
        }
    )
    show_plan(found["plan"])


def _against_promise(found: Transfer, finish: str) -> str:
    """A comparison with the promise for a finished transfer; otherwise a note if its end is assumed, or empty."""
    if found["state"] == "FINISHED":
        return against(finish, found["promised_finish"])
    return " (assumed: a late report corrects it)" if found["assumed"] else ""


def signal_text(signal: dict[str, Any] | None) -> str | None:
    """A start signal on one line."""
    if signal is None:
        return None
    if signal["kind"] == "clock":
        return "clock: begins at its booked time"
    timeout = "" if signal["timeout_s"] is None else f" after {show_duration(round(signal['timeout_s'] * US_PER_S))}"
    return f"{signal['kind']}; without one{timeout}: {signal['on_timeout']}; if that one needs longer: {signal['on_overrun']}"


def show_plan(plan: Plan) -> None:
    """Print a plan's rows."""
    rows = context.table("From", "To", "Rate", "Path", right=("Rate",))
    for segment in plan["segments"]:
        rows.add_row(segment["begin"], segment["end"], show_rate(segment["rate_bps"]), " ".join(segment["path"]))
    if plan["segments"]:
        context.show_table(rows)


def show_effects(changed: Transfer) -> None:
    """Print the effects of a preview: the freed capacity, and the transfers that would move."""
    for segment in cast(TransferPreview, changed).get("freed", ()):
        rate, path = show_rate(segment["rate_bps"]), " ".join(segment["path"])
        context.say(f"  would free {rate} on {path} from {segment['begin']} to {segment['end']}")
    for moved in cast(TransferPreview, changed).get("moved", ()):
        name = f"{moved['id']} ({moved['label'] or moved['source'] + ' to ' + moved['destination']})"
        late = f", and was promised by {moved['promised_finish']}" if moved["broken"] else ""
        context.say(f"  would move {name}: done by {moved['finish']} instead of {moved['finish_before']}{late}")


def show_quotes(quotes: list[Quote], as_json: bool, show_plans: Callable[[list[tuple[Quote, Plan]]], None]) -> None:
    """Print the answer of each planner."""
    if as_json:
        context.show_json({"quotes": quotes})
    else:
        if plans := [(quote, quote["plan"]) for quote in quotes if quote["plan"] is not None]:
            show_plans(plans)
        for quote in quotes:
            if quote["problem"] is not None:
                context.remark(f"{quote['planner']}: no", "bold")
                context.show_problem(quote["problem"])
    if not any(quote["admitted"] for quote in quotes):
        raise typer.Exit(context.FAILED)


def as_lines(plans: list[tuple[Quote, Plan]]) -> None:
    """Print plans, one line each."""
    for quote, plan in plans:
        mean = plan["metrics"]["mean_rate_bps"]
        rate = f", on average {show_rate(int(mean))}" if mean else ""
        context.say(f"{quote['planner']}: {plan['start']} - {plan['finish']}{rate}")


def as_table(plans: list[tuple[Quote, Plan]]) -> None:
    """Print plans side by side."""
    rows = context.table("Planner", "Start", "Finish", "On average", "Segments", "Path", "", right=("On average", "Segments"))
    for quote, plan in plans:
        mean = plan["metrics"]["mean_rate_bps"]
        rows.add_row(
            quote["planner"],
            plan["start"],
            plan["finish"],
            show_rate(int(mean)) if mean else "-",
            str(len(plan["segments"])),
            " | ".join(" ".join(path) for path in plan["paths"]),
            "" if quote["books"] else "predicts only",
        )
    context.show_table(rows)


def show_batch(items: list[BatchItem], as_json: bool) -> None:
    """Print the outcome of each item of a batch."""
    if as_json:
        context.show_json({"items": items})
        return
    for number, item in enumerate(items, 1):
        booked = item["transfer"]
        if booked is not None:
            context.remark(f"{number}: {name_of(booked)} {booked['id']}, promised by {booked['promised_finish']}")
        elif item["problem"] is not None:
            context.remark(f"{number}: refused")
            context.show_problem(item["problem"])
