# SPDX-License-Identifier: Apache-2.0
"""`bwb` in this process: what it said."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Bwb = Callable[..., Ran]
