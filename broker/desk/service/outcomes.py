# SPDX-License-Identifier: Apache-2.0
"""The outcome of a command: a result or a refusal, and what is stored of it."""

import logging
from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from broker.core.transfer import IllegalTransition
from broker.desk.admission.admit import Admit
from broker.desk.chains.handover import update_successors
from broker.desk.ground.batch import Batch, Doubted, Heavy, NotLocked
from broker.desk.ground.command import Command
from broker.desk.ground.policy import Policy
from broker.desk.ground.problems import Problem
from broker.planners import PLANNERS
from broker.store import idempotency

log = logging.getLogger(__name__)


def decide(command: Command[Any], batch: Batch, policy: Policy) -> Any:
    """Its result, or the exception that its caller shall get; of what failed nothing stays in the batch. Raises NotLocked."""
    mark = batch.mark()
    noted = len(batch.noted)
    try:
        result = command.decide(batch)
        update_successors(batch, batch.noted[noted:], policy)
    except Problem as problem:
        batch.back_to(mark)
        return problem
    except IllegalTransition as illegal:
        batch.back_to(mark)
        return Problem("conflict", str(illegal), {"state": str(illegal.state)})
    except Heavy as heavy:
        batch.back_to(mark)
        return heavy
    except (NotLocked, Doubted):  # the whole batch begins anew
        raise
    except Exception as error:
        log.exception("a command failed")
        batch.back_to(mark)
        return error
    else:
        return result


def count_refusals(decided: Sequence[tuple[Command[Any], Any]]) -> Counter[tuple[str, str]]:
    """How many requests were refused now, by (planner, code of the problem)."""
    counted: Counter[tuple[str, str]] = Counter()
    for command, outcome in decided:
        if not isinstance(command, Admit):
            continue
        results = [outcome] * len(command.asks) if isinstance(outcome, Problem) else outcome
        if isinstance(results, list):
            counted.update(
                (ask.spec.planner if ask.spec.planner in PLANNERS else "unknown", result.code)
                for ask, result, before in zip(command.asks, results, command.decided or repeat(None), strict=False)
                if before is None and isinstance(result, Problem)
            )
    return counted


def encode_answer(command: Command[Any], outcome: Any) -> Any:
    """What an idempotency key remembers: a result or a refusal, and nothing of a fault of ours (then the key stays unanswered)."""
    if isinstance(outcome, Problem):
        return {"problem": [outcome.code, outcome.detail, outcome.more]}
    if isinstance(outcome, BaseException):
        return None
    return {"result": command.answer(outcome)}


async def recall(connection: AsyncConnection, command: Command[Any], known: idempotency.Known) -> Any:
    """The answer to a key that was used before, as it was; a Problem where the request is another one."""
    assert command.key is not None
    if known.body_hash != command.key.body_hash:
        return Problem(
            "idempotency-key-reused",
            "this Idempotency-Key was used before with another body; use a new key for a new request",
            {"errors": [{"field": "Idempotency-Key", "detail": "used before with another body"}]},
        )
    if known.answer is None:
        return Problem("conflict", "this Idempotency-Key belongs to a request that failed; use a new key")
    if "problem" in known.answer:
        return Problem(*known.answer["problem"])
    return await command.recall(connection, known.answer["result"])
