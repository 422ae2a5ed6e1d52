# SPDX-License-Identifier: Apache-2.0
"""From the body of a request to what the desk is asked."""

from collections.abc import Sequence
from dataclasses import replace

from broker.api.schemas import TransferRequest
from broker.api.transfer_fields import read_spec
from broker.core.transfer import Mode
from broker.desk.admission.ask import Ask
from broker.desk.ground.problems import Problem


def parse_ask(body: TransferRequest, transfer_id: str, batch: Sequence[str] | None = None) -> Ask:
    """`batch`: the ids of the items before it, of a batch. Raises Problem for an index in `after` that is none of them."""
    spec = read_spec(body)
    if isinstance(body.after, int):
        spec = replace(spec, after=_named(body.after, batch))
    mode = None if body.mode is None else Mode(body.mode)
    return Ask(transfer_id, spec, mode, body.hold, body.preempt, body.hosts_up_from)


def parse_asks(bodies: Sequence[TransferRequest], ids: Sequence[str]) -> list[Ask]:
    """Of a batch, where `after` may be the index of an earlier item. Raises Problem for one that is not."""
    return [parse_ask(body, ids[index], ids[:index] if isinstance(body.after, int) else ()) for index, body in enumerate(bodies)]


def _named(index: int, batch: Sequence[str] | None) -> str:
    if batch is None:
        raise Problem.of_field("after", "an index is for batches; name the transfer that ends first by its id")
    if index >= len(batch):
        raise Problem.of_field(f"{len(batch)}.after", f"{index} is no earlier item of the batch; they count from 0")
    return batch[index]
