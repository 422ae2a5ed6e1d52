# SPDX-License-Identifier: Apache-2.0
"""The Python client of the REST API. It depends on no other part of the broker and can be installed alone.

from broker.client import BrokerClient

with BrokerClient.find() as broker:
    transfer = broker.submit({"source": "A", "destination": "B", "volume_bytes": 10**9})
    print(transfer["plan"]["finish"])
"""

from broker.client.client import BrokerClient
from broker.client.errors import BrokerUnreachable, ClientError, NoBroker, ProblemError
from broker.client.locate import Endpoint, default_state_dir, locate
from broker.client.transfers import ENDED

__all__ = [
    "ENDED",
    "BrokerClient",
    "BrokerUnreachable",
    "ClientError",
    "Endpoint",
    "NoBroker",
    "ProblemError",
    "default_state_dir",
    "locate",
]
