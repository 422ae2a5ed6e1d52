# SPDX-License-Identifier: Apache-2.0
"""RR-6205 again (docs/experiments/endhost.md).

python -m tests.experiments.endhost                          everything; goes on where it was stopped
python -m tests.experiments.endhost --rtt 10 --only spaghetti-pacing,ifs --repetitions 3
python -m tests.experiments.endhost --report                 tables, figures and verdicts of what was measured
"""

import argparse
import contextlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from broker.lab import LabError
from tests.experiments.endhost import setting
from tests.experiments.endhost.report import write
from tests.experiments.endhost.required import verdicts
from tests.experiments.endhost.run import Control, Echo, Mismatch, Notebook, Signalling, Steps

DEFAULT_NOTES = Path(".endhost/runs.jsonl")
# A machine whose hypervisor has others to serve comes back to itself, or does not.
_MAX_DISCARDED_IN_A_ROW = 60

Job = tuple[str, int, Callable[[Any], Any]]


def main() -> int:
    arguments = _arguments()
    names = arguments.only.split(",") if arguments.only else [*setting.STRATEGIES, *EXTRA]
    rtts = [round(float(rtt) * 1000) for rtt in arguments.rtt.split(",")] if arguments.rtt else list(setting.RTTS_US)
    if unknown := [n for n in names if n not in setting.STRATEGIES and n not in EXTRA] + [
        str(r) for r in rtts if r not in setting.RTTS_US
    ]:
        sys.exit(f"endhost: unknown: {', '.join(unknown)}; there are {', '.join([*setting.STRATEGIES, *EXTRA])} at 0.1, 10, 100")
    if arguments.fresh and arguments.notes.exists():
        arguments.notes.rename(arguments.notes.with_suffix(f".{time.strftime('%Y%m%d-%H%M%S')}.jsonl"))
    try:
        notes = Notebook(arguments.notes, _described())
    except Mismatch as mismatch:
        sys.exit(f"endhost: {mismatch}")
    if arguments.notes == DEFAULT_NOTES:
        (arguments.notes.parent / ".gitignore").write_text("*\n")
    console = Console(stderr=True)
    if not arguments.report:
        try:
            _measure(notes, names, rtts, arguments.repetitions, console)
        except LabError as error:
            sys.exit(f"endhost: {error}")
        except KeyboardInterrupt:
            console.print(f"stopped; {len(notes.runs())} runs are in {notes.path}: the same command goes on")
            return 130
    return _conclude(notes, arguments.repetitions, arguments.docs, console)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="endhost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=setting.REPETITIONS)
    parser.add_argument("--rtt", help="in ms: 0.1,10,100; default: all")
    parser.add_argument("--only", help=f"of {', '.join([*setting.STRATEGIES, *EXTRA])}; default: all")
    parser.add_argument("--notes", type=Path, default=DEFAULT_NOTES, help="where the records are kept")
    parser.add_argument("--fresh", action="store_true", help="put earlier records aside")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--docs", type=Path, help="write tables and figures here: docs/experiments")
    return parser.parse_args()


def _described() -> dict[str, Any]:
    """What the records hold for; others are not mixed with them."""
    return {
        "capacity_bps": setting.CAPACITY_BPS,
        "buffer_bytes": setting.BUFFER_BYTES,
        "moderate_us": setting.MODERATE_US,
        "smaller_bytes": {str(rtt): size for rtt, size in setting.SMALLER_BYTES.items()},
        "machine": f"{os.cpu_count()} cores, Linux {platform.release()}",
    }


# -- measuring ----------------------------------------------------------------------------------------------------------------------


def _measure(notes: Notebook, names: Sequence[str], rtts: Sequence[int], repetitions: int, console: Console) -> None:
    from tests.experiments.endhost.stage import interruptible, stage

    jobs = [job for rtt in rtts for job in _jobs(notes, names, rtt, repetitions)]
    if not jobs:
        console.print("nothing is left to measure")
        return
    interruptible()
    with _progress(console, len(jobs)) as advance, stage() as set_up:
        rtt_now = None
        left_out: set[str] = set()
        for label, rtt, job in jobs:
            if rtt != rtt_now:
                set_up.set_rtt(rtt)
                rtt_now = rtt
                notes.add(Echo(rtt, set_up.round_trip_us()))
            advance(f"{label}, {setting.rtt_label(rtt)}", 0)
            if label not in left_out and (lacking := _repeat(job, set_up, notes, f"{label}, {setting.rtt_label(rtt)}", console)):
                console.print(f"{label}: LEFT OUT, {lacking}")
                left_out.add(label)
            advance("", 1)


def _repeat(job: Callable[[Any], Any], set_up: Any, notes: Notebook, label: str, console: Console) -> str | None:
    """Until a repetition counts. Answers why there can be none: a mechanism that this host has not."""
    from broker.client import ProblemError

    for attempt in range(1, _MAX_DISCARDED_IN_A_ROW + 1):
        try:
            record = job(set_up)
        except AssertionError:
            set_up.keep_logs(kept := notes.path.parent / f"failed-{time.strftime('%H%M%S')}")
            console.print(f"{label}: failed; what agents, broker and emulator said is in {kept}")
            raise
        except ProblemError as problem:
            if problem.code != "unsupported":
                raise
            return str(problem)
        notes.add(record)
        if getattr(record, "discarded", None) is None:
            return None
        console.print(f"{label}: discarded ({attempt}), {record.discarded}")
    sys.exit(f"endhost: {_MAX_DISCARDED_IN_A_ROW} discarded in a row: this machine is too busy now")


def _jobs(notes: Notebook, names: Sequence[str], rtt: int, repetitions: int) -> Iterator[Job]:
    """What is missing at one RTT: the strategies in turn, so that whatever drifts, drifts for all."""
    from tests.experiments.endhost import control, signalling, steps, strategies

    done = notes.done()
    for repetition in range(1, repetitions + 1):
        for name in names:
            if name in setting.STRATEGIES and done[name, rtt] < repetition:
                strategy = setting.STRATEGIES[name]
                yield name, rtt, partial(strategies.run, strategy=strategy, rtt_us=rtt, repetition=repetition)
    if "steps" in names:
        had = [r for r in notes.records if isinstance(r, Steps) and r.discarded is None and r.rtt_us == rtt]
        for mechanism in steps.MECHANISMS:
            for n in range(1 + sum(r.mechanism == mechanism for r in had), min(repetitions, steps.REPETITIONS) + 1):
                yield f"steps-{mechanism}", rtt, partial(steps.run, mechanism=mechanism, rtt_us=rtt, repetition=n)
    if "signalling" in names and not any(isinstance(r, Signalling) and r.rtt_us == rtt for r in notes.records):
        yield "signalling", rtt, lambda stage: signalling.run(stage, rtt)
    # No matter of the round trip: once, beside the shortest.
    if "control" in names and rtt == min(setting.RTTS_US):
        measured = {r.mechanism for r in notes.records if isinstance(r, Control)}
        for mechanism in control.MECHANISMS:
            if mechanism not in measured:
                yield f"control-{mechanism}", rtt, partial(control.run, mechanism=mechanism)


EXTRA = ("steps", "signalling", "control")


@contextlib.contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[str, int], None]]:
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        task = progress.add_task("setting up", total=total)
        yield lambda label, steps: progress.update(task, advance=steps, description=label or None)


# -- concluding ---------------------------------------------------------------------------------------------------------------------


def _conclude(notes: Notebook, repetitions: int, docs: Path | None, console: Console) -> int:
    judged = verdicts(notes.records, repetitions)
    print(write(notes.records, judged, docs))
    missed = [verdict for verdict in judged if not verdict.reached]
    console.print(f"{len(judged) - len(missed)} of {len(judged)} required figures reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
