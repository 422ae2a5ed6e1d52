# SPDX-License-Identifier: Apache-2.0
"""Watching transfers until they have ended."""

import time

import typer

from broker.cli import context
from broker.cli.progress import Board
from broker.client import ENDED, BrokerClient, BrokerUnreachable
from broker.client.documents import Transfer

_POLL_S = 0.5
_REDRAW_S = 5.0
_WAITING = frozenset({"HELD", "RESERVED"})


def _wait_s(ids: list[str], found: dict[str, Transfer]) -> float:
    """How long the broker may wait for a change: only for a single watched transfer that has not begun, so has no progress to show."""
    return _REDRAW_S if len(ids) == 1 and ids[0] in found and found[ids[0]]["state"] in _WAITING else 0.0


def watch_all(broker: BrokerClient, ids: list[str], as_json: bool) -> None:
    """Watch until all have ended; raises typer.Exit unless all have finished."""
    found: dict[str, Transfer] = {}
    try:
        with Board(context.err if as_json else context.out) as board:
            while True:
                try:
                    for transfer_id in ids:
                        if transfer_id not in found or found[transfer_id]["state"] not in ENDED:
                            found[transfer_id] = broker.transfer(transfer_id, wait_s=_wait_s(ids, found))
                    board.notice("")
                except BrokerUnreachable as error:
                    if not found:
                        raise
                    board.notice(f"{error}; agents go on with what is booked, still trying (ctrl-C ends the watching)")
                board.show(list(found.values()))
                if len(found) == len(ids) and all(item["state"] in ENDED for item in found.values()):
                    break
                if not _wait_s(ids, found):
                    time.sleep(_POLL_S)
    except KeyboardInterrupt:
        alive = [item["id"] for item in found.values() if item["state"] not in ENDED] or ids
        context.remark(f"\nnot watching any more; the transfers go on: bwb transfer watch {' '.join(alive)}")
        raise typer.Exit(context.INTERRUPTED) from None
    if as_json:
        context.show_json(list(found.values()) if len(ids) != 1 else found[ids[0]])
    if any(item["state"] != "FINISHED" for item in found.values()):
        raise typer.Exit(context.FAILED)
