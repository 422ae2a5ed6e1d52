# SPDX-License-Identifier: Apache-2.0
"""BrokerClient: the REST API as methods. It waits while the broker restarts, and never books anything twice."""

from pathlib import Path
from typing import Self

from broker.client.jobs import Jobs
from broker.client.locate import locate
from broker.client.network import Network
from broker.client.operation import Operation
from broker.client.transfers import Transfers


class BrokerClient(Transfers, Network, Jobs, Operation):
    """One broker, one token. Usable from several threads.

    A request without an answer is repeated until `patience_s` have passed if that is safe: reads, requests with an Idempotency-Key
    (submissions always have one), and requests that never reached the broker. After 429 or 503 every request is repeated. Raises
    ProblemError for a refusal (its `document` explains it) and BrokerUnreachable.
    """

    @classmethod
    def find(cls, state_dir: Path | None = None, patience_s: float | None = None) -> Self:
        """A client of the broker of a state directory, of BWB_URL and BWB_TOKEN, or of the default state directory. Raises NoBroker."""
        endpoint = locate(state_dir)
        return cls(endpoint.url, endpoint.token, patience_s)
