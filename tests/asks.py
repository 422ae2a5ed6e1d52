# SPDX-License-Identifier: Apache-2.0
"""Requests and changes in a line each: what of them belongs to the spec is named beside the rest."""

from typing import Any

from broker.core.transfer import Mode
from broker.core.transfer_spec import Payload, SpecPatch, TransferSpec
from broker.desk.admission.ask import Ask
from broker.desk.ground.limits import NOBODY, Account
from broker.desk.ground.policy import Policy
from broker.desk.lifecycle.modify import Change

FILE = Payload("x")


def make_ask(
    transfer_id: str,
    source: str,
    destination: str,
    volume_bytes: int | None,
    *,
    mode: Mode | None = None,
    hold: bool = False,
    preempt: bool = False,
    **spec: Any,
) -> Ask:
    """An ask whose spec has these fields; `not_before_us` None: as early as can be."""
    return Ask(transfer_id, TransferSpec(source, destination, volume_bytes, **_known(spec)), mode, hold, preempt)


def make_change(transfer_id: str, actor: str = "me", account: Account = NOBODY, **values: Any) -> Change:
    """A change of these fields of the spec, or of its options."""
    return Change(transfer_id, actor, None, Policy(), SpecPatch(_known(values)), account)


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"not_before_us": values.get("not_before_us") or 0} if "not_before_us" in values else values
