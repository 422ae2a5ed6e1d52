# SPDX-License-Identifier: Apache-2.0
"""The machine code of the scans, made by a process of its own: a compiler that has run keeps 130 MB for as long as its process lives.

`python -m broker.machine_code` makes it, and does nothing where it is there already; `make build` does so for all that come later.
"""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from broker.core import scans
from broker.planners import warm_up

log = logging.getLogger(__name__)


def is_there() -> bool:
    """Has some process compiled the scans here before? Where no folder can hold machine code, another process could not help: true."""
    folder = cast(Any, scans.minimum).stats.cache_path
    return folder is None or any(Path(folder).glob("scans.minimum-*.nbi"))  # the last one that `warm_up` comes by


def make() -> None:
    """Have it made, unless it is there. Whatever goes wrong, this process can still compile for itself."""
    if is_there():
        return
    done = subprocess.run(
        [sys.executable, "-m", "broker.machine_code"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        log.warning("the scans could not be compiled apart: %s", done.stderr[-500:])


if __name__ == "__main__":
    if not is_there():
        warm_up()
