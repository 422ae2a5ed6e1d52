# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a client and the broker: it cannot be found, it cannot be reached, or it says no (and why)."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """What a client cannot go on from."""


class NoBroker(ClientError):
    """Nothing says where the broker is, or with which token to speak to it."""


class BrokerUnreachable(ClientError):
    """No answer, for longer than the client's patience."""


class ProblemError(ClientError):
    """An answer of 400 or above. `document` is the whole of its problem+json: refusals carry `binding` and `counter_offers`."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        super().__init__(f"{self.code}: {self.detail}")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.document.get("status", 500))

    @property
    def code(self) -> str:
        """The stable last part of the type: `infeasible`, `not-found`, ..."""
        return str(self.document.get("type", "about:blank")).rsplit("/", 1)[-1]

    @property
    def detail(self) -> str:
        """What is wrong and the way out."""
        return str(self.document.get("detail", ""))
