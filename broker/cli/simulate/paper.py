# SPDX-License-Identifier: Apache-2.0
"""`bwb simulate vbls-paper`: run the points in several processes; their table and CSV."""

import csv
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import StringIO
from multiprocessing import get_context
from typing import TypeVar

import typer
from rich import box
from rich.table import Table

from broker.cli.simulate.show import progress, show_table
from broker.simulate.paper import CLASSES, LOADS, SCHEMES, Delays, Point, Result, measure, points, summarise

MAX_REQUESTS = 1_000_000
MAX_JOBS = 256
_MAX_VALUES = 100  # loads, and seeds

_Number = TypeVar("_Number", int, float)


def parse_loads(text: str | None) -> list[float]:
    """Comma-separated loads. Raises ValueError."""
    if text is None:
        return list(LOADS)
    loads = []
    for word in _words(text, "--loads"):
        try:
            load = float(word)
        except ValueError:
            raise ValueError(f"--loads: {word!r} is no number; write 0.5,0.9") from None
        if not 0.001 <= load <= 10:  # also excludes NaN
            raise ValueError(f"--loads: {word} is not in 0.001..10 (the queue grows for ever from 1 on)")
        loads.append(load)
    return _distinct(loads, "--loads")


def parse_seeds(text: str) -> list[int]:
    """Comma-separated seeds. Raises ValueError."""
    seeds = []
    for word in _words(text, "--seeds"):
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            raise ValueError(f"--seeds: {word!r} is no whole number from 0 on; write 1,2,3")
        seeds.append(int(word))
    return _distinct(seeds, "--seeds")


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(f"{option}: {text!r} has an empty entry")
    if len(words) > _MAX_VALUES:
        raise ValueError(f"{option}: at most {_MAX_VALUES} are possible")
    return words


def _distinct(values: list[_Number], option: str) -> list[_Number]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise ValueError(f"{option}: {value} is there twice")
    return values


def measure_all(loads: Sequence[float], seeds: Sequence[int], requests: int, jobs: int) -> list[Result]:
    """Run every load with every seed in `jobs` processes; one result for each load."""
    wanted = points(loads, seeds, requests)
    runs: list[tuple[Point, Delays]] = []
    with progress() as told:
        for point, delays in zip(wanted, _measured(wanted, jobs), strict=True):
            runs.append((point, delays))
            told(len(runs) / len(wanted), f"load {point.load:g}, seed {point.seed}")
    return summarise(runs)


def _measured(wanted: Sequence[Point], jobs: int) -> Iterator[Delays]:
    """The results in the order of the points, regardless of which finishes first."""
    if jobs == 1:
        yield from map(measure, wanted)
        return
    # Spawned, not forked: this process may already have threads.
    with ProcessPoolExecutor(min(jobs, len(wanted)), get_context("spawn")) as pool:
        # Ctrl-C reaches all processes of a terminal. Children started while it is ignored keep ignoring it: only this process
        # reacts.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            coming = pool.map(measure, wanted)
        finally:
            signal.signal(signal.SIGINT, before)
        try:
            yield from coming
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def show(results: Sequence[Result], seeds: int, requests: int) -> None:
    """Print the paper's table."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Load", justify="right")
    table.add_column("Rmax", justify="right")
    for scheme in SCHEMES:
        table.add_column(scheme.upper(), justify="right", no_wrap=True)
    table.add_column("VBLS / PS", justify="right")
    found = {(result.load, result.rmax_channels, result.scheme): result for result in results}
    for load in dict.fromkeys(result.load for result in results):
        for channels in CLASSES:
            row = {scheme: found[load, channels, scheme] for scheme in SCHEMES}
            vbls, ps = row["vbls"].normalized_delay_s, row["ps"].normalized_delay_s
            against = f"{vbls / ps - 1:+.2%}" if vbls is not None and ps is not None else "-"
            first = f"{load:g}" if channels == CLASSES[0] else ""
            table.add_row(first, str(channels), *(_cell(each) for each in row.values()), against)
        table.add_section()
    show_table(table)
    interval = f"mean and 95 % confidence interval over {seeds} seeds" if seeds > 1 else "one seed"
    typer.echo(f"Normalized delay in seconds by Rmax in channels of 10 Gb/s; {requests} files a run, {interval}.")


def _cell(result: Result) -> str:
    if result.normalized_delay_s is None:
        return "-"
    interval = "" if result.ci95_s is None else f" ±{result.ci95_s:.3f}"
    return f"{result.normalized_delay_s:.3f}{interval}"


def as_csv(results: Sequence[Result]) -> str:
    """The results with one row for each load."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Result._fields)
    writer.writerows(results)
    return text.getvalue()
