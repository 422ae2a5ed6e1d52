# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of a benchmark one after the other, and loses nothing that was measured, whatever happens to one of them."""

import json
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

INTERRUPTED = 130


def run(parts: Mapping[str, Callable[[], Any]], about: Mapping[str, Any], file: Path | None = None) -> int:
    """Print progress on stderr and one JSON object on stdout: `about`, and for each part what it measured, `skipped` or `error`.

    0: every part measured or said why it cannot run here; 1: a part failed; 130: interrupted. SIGTERM is an interruption, too.
    """
    figures: dict[str, Any] = dict(about)
    status = 0
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for name, measure in parts.items():
            began = time.monotonic()
            _say(f"measuring: {name} ...")
            try:
                figures[name] = measure()
                _say(f"measured:  {name}, {time.monotonic() - began:.0f} s: {json.dumps(figures[name])}")
            except (Exception, SystemExit) as error:
                traceback.print_exc()
                figures[name] = {"error": f"{type(error).__name__}: {error}"}
                status = 1
                _say(f"FAILED:    {name}, {time.monotonic() - began:.0f} s")
            except KeyboardInterrupt:
                figures[name] = {"error": "interrupted"}
                status = INTERRUPTED
                _say(f"INTERRUPTED: {name}, {time.monotonic() - began:.0f} s; a second ctrl-C loses what was measured")
                break
            finally:
                _write(figures, file)
    finally:
        signal.signal(signal.SIGTERM, before)
    print(json.dumps(figures, indent=1), flush=True)
    return status


def _write(figures: Mapping[str, Any], file: Path | None) -> None:
    """Whole or not at all, so that what was measured outlives even a kill -9 of this process."""
    if file is not None:
        written = file.with_name(f"{file.name}.part")
        written.write_text(json.dumps(figures, indent=1) + "\n")
        written.replace(file)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
