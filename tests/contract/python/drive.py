# SPDX-License-Identifier: Apache-2.0
"""Submit, a refusal, a patch of one field, cancel: with a client that openapi-python-client made of the contract."""

import os

from generated import AuthenticatedClient
from generated.api.transfers import cancel_transfer, change_transfer, submit_transfer
from generated.models import Problem, Transfer, TransferChange, TransferRequest

broker = AuthenticatedClient(base_url=os.environ["BWB_URL"], token=os.environ["BWB_TOKEN"])


def request(volume_bytes: int) -> TransferRequest:
    return TransferRequest("A", "B", volume_bytes=volume_bytes, priority=7, paths=2, planner="fbls", label="python")


submitted = submit_transfer.sync_detailed(client=broker, body=request(10**9))
transfer = submitted.parsed
assert isinstance(transfer, Transfer), submitted
assert submitted.headers["Location"].endswith(transfer.id)

too_much = request(10**15)
too_much.deadline = transfer.plan.finish
refused = submit_transfer.sync(client=broker, body=too_much)
assert isinstance(refused, Problem) and refused.status == 409, refused
assert refused.binding.link == "L1"
assert any(offer.kind == "smallest_deadline" and offer.deadline for offer in refused.counter_offers), refused

change = TransferChange(label="patched")
changed = change_transfer.sync(transfer.id, client=broker, body=change, if_match=submitted.headers["ETag"])
assert isinstance(changed, Transfer) and changed.label == "patched", changed
for name in ("volume_bytes", "priority", "paths", "planner"):
    assert getattr(changed, name) == getattr(transfer, name), name

canceled = cancel_transfer.sync(transfer.id, client=broker)
assert isinstance(canceled, Transfer) and canceled.state == "CANCELED", canceled
print(transfer.id)
