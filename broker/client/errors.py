# SPDX-License-Identifier: Apache-2.0
"""Errors between a client and the broker: the broker cannot be found, cannot be reached, or refuses (with the reason)."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The base class of the client's errors."""


class NoBroker(ClientError):
    """The address of the broker, or a token for it, is not known."""


class BrokerUnreachable(ClientError):
    """No answer, for longer than the client's patience."""


class ProblemError(ClientError):
    """An answer of 400 or above. `document` is its complete problem+json: refusals carry `binding` and `counter_offers`."""

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
        """What is wrong, and how to correct it."""
        return str(self.document.get("detail", ""))
