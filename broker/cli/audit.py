# SPDX-License-Identifier: Apache-2.0
"""`bwb audit`: check that all promises are kept."""

import typer
from rich.text import Text

from broker.cli import context
from broker.cli.context import AsJson, StateDir
from broker.cli.quantities import show_duration

# Explanations of the broker's checks, for people. A check that is missing here is shown by its name.
MEANINGS = {
    "over_capacity": "no link is booked over its capacity at any instant",
    "volume_not_carried": "every live transfer's segments carry its volume",
    "outside_the_times_asked": "no segment lies before not_before, after the deadline, or above Rmax",
    "paths_add_up_to_more": "a transfer uses one path at a time, or several that together keep to Rmax",
    "holding_time_broken": "holding times are as long as asked, without a gap, at no less than Rmin",
    "ledger_differs_from_plan": "the ledger holds exactly what the plans say",
    "ended_but_booked": "what has ended holds no capacity",
    "head_behind_ledger": "each link's version is its newest booking's",
    "key_used_twice": "no idempotency key made two transfers",
    "successor_out_of_turn": "who waits for another is not booked before its end, and waits for nobody that has ended",
    "token_use_differs": "what tokens are said to have booked is what their transfers add up to",
}
_MAX_ROWS = 5


def audit_command(state_dir: StateDir = None, as_json: AsJson = False) -> None:
    """Have the broker check its promises from the database alone, without the planners' code.

    Exit status 1 when an invariant is broken.
    """
    with context.broker(state_dir, as_json) as broker:
        found = broker.audit()
    if as_json:
        context.show_json(found)
    else:
        rows = context.table("Check", "Proves that", "Result")
        for name, violations in found["violations"].items():
            result = Text(f"{len(violations)} violations", style="bold red") if violations else Text("ok", style="green")
            rows.add_row(name, MEANINGS.get(name, ""), result)
        context.show_table(rows)
        for name, violations in found["violations"].items():
            for row in violations[:_MAX_ROWS]:
                context.say(Text(f"{name}: " + ", ".join(f"{key} {value}" for key, value in row.items())))
        verdict = "all invariants hold" if found["clean"] else "INVARIANTS ARE BROKEN"
        context.say(f"{verdict} at {found['at']} (checked in {show_duration(found['took_us'])})")
    if not found["clean"]:
        raise typer.Exit(context.FAILED)
