# SPDX-License-Identifier: Apache-2.0
"""What-if simulation inside the process of its own."""

from collections.abc import Callable
from typing import Any

Progress = Callable[[float, str], None]


def simulate(task: Any, progress: Progress) -> dict[str, Any]:
    raise NotImplementedError
