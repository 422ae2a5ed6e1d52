# SPDX-License-Identifier: Apache-2.0
"""Plans for people: tables with the rates over time, one planner's or several side by side."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from broker.cli.plan.outcome import Outcome
from broker.cli.quantities import show_duration, show_rate
from broker.core.plan import Plan
from broker.core.segments import Segment, total_rates
from broker.core.units import US_PER_S, format_time
from broker.planners.offers import CounterOffer
from broker.planners.sequence import Decision

_COLUMNS = 18
_MAX_ROWS = 40  # of a comparison: more would scroll its first table off the screen
_BARS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*%#"
_UNITS = {"congestion": "of the busiest link", "admitted": "admitted", "volume": "bytes", "completion": "weighted seconds"}


def tables(outcome: Outcome, unicode: bool, width: int) -> list[RenderableType]:
    """One row per transfer with its rate over the time of the whole schedule, then the refusals with their reasons.

    Paths need a separate column, for which 80 characters are not enough.
    """
    schedule, paths = outcome.schedule, width >= 100
    begin, end = _span([outcome])
    top = _top(schedule.plans)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("Transfer", "Start", "Finish", "Rate over time", *(("Path",) if paths else ())):
        table.add_column(header, no_wrap=header not in ("Transfer", "Path"), overflow="fold")
    refused = Text()
    for decision in schedule.decisions:
        name, plan = Text(decision.request.id), decision.answer
        if isinstance(plan, Plan):
            along = dict.fromkeys(" ".join(segment.path) for segment in plan.segments)
            table.add_row(
                name,
                format_time(plan.start_us),
                format_time(plan.finish_us),
                Text(picture(plan.segments, begin, end, top, _BARS if unicode else _ASCII_BARS)),
                *([Text(", ".join(along))] if paths else []),
            )
        else:
            table.add_row(name, "refused")
            refused.append("\n".join(_refusal(decision)) + "\n")
    return [table, *([refused] if refused else []), _summary(outcome, top)]


def comparison(outcomes: Sequence[Outcome], unicode: bool, width: int) -> list[RenderableType]:
    """A row of figures for each planner; then a row for each transfer, with its rate over time under every planner."""
    figures = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    figures.add_column("Planner", no_wrap=True)
    for header in ("Admitted", "Busiest", "Done after", "Mean finish", "Segments"):
        figures.add_column(header, justify="right", no_wrap=True)
    for outcome in outcomes:
        mean = outcome.mean_finish_s
        figures.add_row(
            outcome.planner,
            f"{len(outcome.schedule.plans)} of {len(outcome.schedule.decisions)}",
            f"{float(outcome.schedule.congestion_factor):.1%}",
            show_duration(outcome.schedule.makespan_us),
            "-" if mean is None else show_duration(round(mean * US_PER_S)),
            str(outcome.segments),
        )
    requests = len(outcomes[0].schedule.decisions)
    plans = [plan for outcome in outcomes for plan in outcome.schedule.plans]
    begin, end, top = *_span(outcomes), _top(plans)
    about = f"Rates from {format_time(begin)} to {format_time(end)}; a full block is {show_rate(top)}"
    if requests > _MAX_ROWS:
        about += f"; {requests - _MAX_ROWS} transfers more are in --json"
    predicted = [f"{outcome.planner} only predicts and books nothing" for outcome in outcomes if not outcome.books]
    pictures = _side_by_side(outcomes, _BARS if unicode else _ASCII_BARS, width, top) if plans else []
    return [figures, *pictures, Text("\n".join([*([about] if plans else []), *predicted, *_optima(outcomes)]))]


def _side_by_side(outcomes: Sequence[Outcome], bars: str, width: int, top: int) -> Iterator[RenderableType]:
    """As many planners side by side as fit, the others below."""
    begin, end = _span(outcomes)
    decisions = outcomes[0].schedule.decisions[:_MAX_ROWS]
    name = min(max(len("Transfer"), *(len(decision.request.id) for decision in decisions)), 24)
    least = max(len(outcome.planner) for outcome in outcomes)
    most = max((width - name - 3) // (least + 3), 1)  # two blanks and a divider beside every column
    tables = -(-len(outcomes) // most)
    beside = -(-len(outcomes) // tables)
    columns = min(max((width - name - 3) // beside - 3, least), _COLUMNS)
    for first in range(0, len(outcomes), beside):
        shown = outcomes[first : first + beside]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("Transfer", overflow="fold", min_width=name)
        for outcome in shown:
            table.add_column(outcome.planner, no_wrap=True, min_width=columns)
        for i, decision in enumerate(decisions):
            cells = [_cell(outcome.schedule.decisions[i], begin, end, top, bars, columns) for outcome in shown]
            table.add_row(Text(decision.request.id), *map(Text, cells))
        yield table


def picture(segments: Sequence[Segment], begin_us: int, end_us: int, top_bps: int, bars: str, columns: int = _COLUMNS) -> str:
    """The mean rate in each of a few columns between two instants, as a bar of eighths of `top_bps`, rounded up."""
    text = ""
    for column in range(columns):
        left = begin_us + (end_us - begin_us) * column // columns
        right = max(begin_us + (end_us - begin_us) * (column + 1) // columns, left + 1)
        moved = sum(max(0, min(s.end_us, right) - max(s.begin_us, left)) * s.rate_bps for s in segments)
        text += bars[-(-moved * (len(bars) - 1) // (top_bps * (right - left)))]
    return text.rstrip()


def _cell(decision: Decision, begin: int, end: int, top: int, bars: str, columns: int) -> str:
    if isinstance(decision.answer, Plan):
        return picture(decision.answer.segments, begin, end, top, bars, columns)
    return "refused"


def _span(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    plans = [plan for outcome in outcomes for plan in outcome.schedule.plans]
    return min((plan.start_us for plan in plans), default=0), max((plan.finish_us for plan in plans), default=1)


def _top(plans: Sequence[Plan]) -> int:
    """The highest rate of any transfer, over all of its paths."""
    return max((rate for plan in plans for _, _, rate in total_rates(plan.segments)), default=1)


def _title(outcome: Outcome) -> str:
    return f"{outcome.planner} ({outcome.more['objective']})" if "objective" in outcome.more else outcome.planner


def _summary(outcome: Outcome, top: int) -> str:
    schedule = outcome.schedule
    text = (
        f"{_title(outcome)}: {len(schedule.plans)} of {len(schedule.decisions)} admitted, "
        f"busiest link {float(schedule.congestion_factor):.1%}, done after {show_duration(schedule.makespan_us)}; "
        f"a full block is {show_rate(top)}"
    )
    notes = [] if outcome.books else [f"{outcome.planner} only predicts and books nothing"]
    return "\n".join([text, *notes, *_optima([outcome])])


def _optima(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        more = outcome.more
        if "objective" in more:
            proven = "no bound was proven" if more["bound"] is None else f"no plan can have better than {more['bound']:.6g}"
            yield f"{_title(outcome)}: {more['value']:.6g} {_UNITS[more['objective']]}; {proven}"


def _refusal(decision: Decision) -> Iterator[str]:
    refusal, offer = decision.answer, decision.offer or CounterOffer(None, None)
    assert not isinstance(refusal, Plan)
    yield f"{decision.request.id}: {refusal.code}: {refusal.detail}"
    if offer.earliest_finish_us is not None:
        yield f"    earliest finish without the deadline: {format_time(offer.earliest_finish_us)}"
    if offer.largest_volume_bytes is not None:
        yield f"    largest volume by the deadline: {offer.largest_volume_bytes:,} bytes"
    if offer.smallest_rate_max_bps is not None:
        yield f"    possible from this rate_max_bps on: {offer.smallest_rate_max_bps}"
    if offer.largest_rate_min_bps is not None:
        yield f"    possible up to this rate_min_bps: {offer.largest_rate_min_bps}"
    if offer.longest_duration_us is not None:
        yield f"    longest duration by the deadline: {show_duration(offer.longest_duration_us)}"
