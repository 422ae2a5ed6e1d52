# SPDX-License-Identifier: Apache-2.0
"""What the body of a request means to the desk."""

from collections.abc import Sequence

from broker.api.schemas import TransferRequest
from broker.core.request import NO_OPTIONS, Options
from broker.core.units import US_PER_S
from broker.desk.admission.admit import Ask
from broker.desk.ground.problems import Problem


def ask(body: TransferRequest, transfer_id: str, batch: Sequence[str] | None = None) -> Ask:
    """`batch`: the ids of the items before it, of a batch. Raises Problem for an index in `after` that is none of them."""
    after = body.after
    if isinstance(after, int):
        if batch is None:
            raise Problem.of_field("after", "an index is for batches; name the transfer that ends first by its id")
        if after >= len(batch):
            raise Problem.of_field(f"{len(batch)}.after", f"{after} is no earlier item of the batch; they count from 0")
        after = batch[after]
    return Ask(
        id=transfer_id,
        source=body.source,
        destination=body.destination,
        volume_bytes=body.volume_bytes,
        duration_us=microseconds(body.duration_s),
        rate_max_bps=body.rate_max_bps,
        rate_min_bps=body.rate_min_bps,
        not_before_us=body.not_before,
        deadline_us=body.deadline,
        priority=body.priority,
        planner=body.planner,
        project=body.project,
        label=body.label,
        hold=body.hold,
        mode=body.mode,
        payload=None if body.payload is None else body.payload.model_dump(),
        mechanism=body.mechanism,
        after=after,
        signal=None if body.signal is None else body.signal.model_dump(),
        metadata=body.metadata,
        options=_options(body),
        best_effort=body.best_effort,
        preempt=body.preempt,
        hosts_up_from_us=body.hosts_up_from,
    )


def asks(bodies: Sequence[TransferRequest], ids: Sequence[str]) -> list[Ask]:
    """Of a batch, where `after` may be the index of an earlier item. Raises Problem for one that is not."""
    return [ask(body, ids[index], ids[:index] if isinstance(body.after, int) else ()) for index, body in enumerate(bodies)]


def microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * US_PER_S)


def _options(body: TransferRequest) -> Options:
    options = Options(
        body.paths,
        None if body.path is None else tuple(body.path),
        body.split,
        microseconds(body.shortest_segment_s),
        body.most_segments,
    )
    return NO_OPTIONS if options == NO_OPTIONS else options
