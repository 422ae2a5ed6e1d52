# SPDX-License-Identifier: Apache-2.0
"""Progress of transfers: bars on a terminal, a line at every change elsewhere."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from broker.cli.context import rate_at, state_text
from broker.cli.quantities import now_us, show_duration, show_rate, show_size, show_time
from broker.client import ENDED
from broker.client.documents import Segment, Transfer
from broker.core import segments as core
from broker.core.units import MICROBITS_PER_BYTE, format_time, parse_time


class Board:
    """Call `show` with the transfers whenever they are read; `notice` shows a message beside them until the next notice."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._said: dict[str, tuple[object, ...]] = {}
        self._notice = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, transfers: Sequence[Transfer], beside: RenderableType | None = None) -> None:
        """Draw the current state of all transfers; `beside` above them."""
        now = now_us()
        if self._live:
            parts: list[RenderableType] = [beside] if beside is not None else []
            parts.append(_bars(transfers, now, self._console.width))
            if self._notice:
                parts.append(Text(self._notice, style="yellow"))
            self._live.update(Group(*parts), refresh=True)
            return
        for transfer in transfers:
            self._say(transfer, now)

    def notice(self, text: str) -> None:
        """Show a message beside the bars, for example that the broker is away; an empty one removes it."""
        if not self._live and text and text != self._notice:
            self._print(text)
        self._notice = text

    def _say(self, transfer: Transfer, now: int) -> None:
        share = _share(transfer)
        reason = transfer["waiting_reason"]
        key = (transfer["state"], transfer["paused"], reason and reason["code"], int(share * 10), transfer["promised_finish"])
        if self._said.get(transfer["id"]) == key:
            return
        self._said[transfer["id"]] = key
        rates = f", booked {show_rate(rate_at(transfer, now))}, measured {show_rate(transfer['measured_bps'])}"
        moving = rates if transfer["state"] == "ACTIVE" else ""
        outlook = _outlook(transfer, now)
        self._print(
            f"{format_time(now)[:19]}Z {name_of(transfer)}: {state_text(transfer).plain}, {share:.0%} of "
            f"{show_size(size_of(transfer))}{moving}{', ' + outlook if outlook else ''}"
        )

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def _bars(transfers: Iterable[Transfer], now: int, width: int) -> Table:
    wide = width >= 110
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Transfer", no_wrap=True, overflow="ellipsis", max_width=32)
    table.add_column("Progress", width=24 if wide else 12)
    for title in ("", "Booked", "Measured") if wide else ("", "Booked"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("State", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for transfer in transfers:
        bar = ProgressBar(total=size_of(transfer), completed=_done(transfer), width=24 if wide else 12)
        moving = transfer["state"] == "ACTIVE"
        booked = show_rate(rate_at(transfer, now)) if moving else ""
        measured = [show_rate(transfer["measured_bps"]) if moving else ""] if wide else []
        cells: list[RenderableType] = [
            Text(name_of(transfer)),
            bar,
            f"{_share(transfer):.0%}",
            booked,
            *measured,
            state_text(transfer),
        ]
        table.add_row(*cells, Text(_outlook(transfer, now)))
    return table


def name_of(transfer: Transfer) -> str:
    """A transfer's label, or its id."""
    return transfer["label"] or transfer["id"]


def size_of(transfer: Transfer) -> int:
    """The volume in bytes; for a holding time, the bytes that may be sent in it."""
    return transfer["booked_bytes"] if transfer["volume_bytes"] is None else transfer["volume_bytes"]


def _done(transfer: Transfer) -> int:
    return size_of(transfer) if transfer["state"] == "FINISHED" else transfer["bytes_done"]


def _share(transfer: Transfer) -> float:
    return _done(transfer) / max(size_of(transfer), 1)


def _outlook(transfer: Transfer, now: int) -> str:
    """The expected finish compared with the promise, or the reason for waiting."""
    promised = transfer["promised_finish"]
    if transfer["state"] == "FINISHED":
        return f"done {show_time(transfer['actual_finish'])}{against(transfer['actual_finish'], promised)}"
    reason = transfer["waiting_reason"]
    why = f"{reason['code']}: {reason['detail']}" if reason else ""
    if transfer["state"] in ENDED:
        return why
    if transfer["state"] == "ACTIVE" and not transfer["paused"]:
        eta = when_carried(transfer["plan"]["segments"], size_of(transfer) - transfer["bytes_done"], now)
        if eta is not None:
            done = format_time(eta)
            return f"done about {show_time(done)}{against(done, promised)}" + (f"; {why}" if why else "")
    if reason and reason["code"] == "scheduled":
        return f"starts {show_time(reason['until'])}, promised {show_time(promised)}"
    return why or f"promised {show_time(promised)}"


def against(finish: str | None, promised: str | None) -> str:
    """How much earlier or later than promised; empty if either is unknown."""
    if finish is None or promised is None:
        return ""
    late = parse_time(finish) - parse_time(promised)
    return f" ({show_duration(abs(late))} {'after' if late > 0 else 'before'} the promise)"


def when_carried(segments: Iterable[Segment], volume_bytes: int, from_us: int = 0) -> int | None:
    """The instant at which segments have carried `volume_bytes` since `from_us`; None if they never do."""
    missing = volume_bytes * MICROBITS_PER_BYTE
    parsed = [core.Segment(parse_time(s["begin"]), parse_time(s["end"]), s["rate_bps"], tuple(s["path"])) for s in segments]
    for start, end, rate in core.total_rates(parsed):
        begin = max(start, from_us)
        if begin >= end:
            continue
        carried = rate * (end - begin)
        if carried >= missing:
            return begin + -(-missing // rate)
        missing -= carried
    return None


class Bar:
    """Progress of one long task: a bar on a terminal, a line at every tenth elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._said = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, share: float, what: str) -> None:
        """`share`: the fraction done, 0 to 1; `what`: the current activity."""
        if self._live:
            row = Table.grid(padding=(0, 1))
            row.add_row(ProgressBar(total=1.0, completed=share, width=40), f"{share:4.0%}", Text(what.strip()))
            self._live.update(row, refresh=True)
            return
        line = f"{int(share * 10) * 10}% {what.strip()}"
        if line != self._said:
            self._said = line
            self._console.print(Text(line), soft_wrap=True)
