# SPDX-License-Identifier: Apache-2.0
"""Output of links, and of the effect of their changes on transfers, for people."""

from broker.cli import context
from broker.cli.quantities import show_rate
from broker.client.documents import Link, LinkChange, LinkDeleted, TopologyChange

MAX_SHOWN = 20


def capacity(found: Link) -> str:
    """The capacity for people; with `*` if it has steps."""
    return show_rate(found["capacity_bps"]) + ("*" if found["available"] else "")


def show_link(found: Link) -> None:
    """Print a link's fields."""
    context.show_fields(
        {
            "link": found["id"],
            "from": found["source"],
            "to": found["target"],
            "capacity": show_rate(found["capacity_bps"]),
            "mtu": found["mtu_bytes"],
            "channel": None if found["channel_bps"] is None else show_rate(found["channel_bps"]),
            "slot": None if found["slot_us"] == 1 else f"{found['slot_us']} µs",
            "metric": found["metric"],
            "way back": found["reverse"],
            "NIC of host": found["host"],
            "revision": found["revision"],
        }
    )
    for step in found["available"]:
        context.say(f"from {step['from']}: {show_rate(step['bps'])}")
    for item in found["windows"]:
        reason = f": {item['reason']}" if item["reason"] else ""
        line = f"{item['kind']} {item['id']} {item['begin']} - {item['end']}: {show_rate(item['bps'])}{reason}"
        context.say(line)


def show_change(changed: LinkChange, as_json: bool) -> None:
    """Print a link after a change, and the effect of the change on transfers."""
    if as_json:
        context.show_json(changed)
        return
    show_link(changed)
    show_settled(changed)


def show_settled(done: LinkChange | LinkDeleted | TopologyChange) -> None:
    """Print the displaced transfers, and the outcome or expected outcome of each."""
    for title, style, ids in (("planned anew", "", done["replanned"]), ("promises broken", "bold red", done["broken"])):
        if ids:
            more = f" and {len(ids) - MAX_SHOWN} more" if len(ids) > MAX_SHOWN else ""
            context.say(f"{title}: {', '.join(ids[:MAX_SHOWN])}{more}", style)
    for outcome in done["outcomes"][:MAX_SHOWN]:
        name = outcome["id"] + (f" ({outcome['label']})" if outcome["label"] else "")
        if outcome["finish"] is None:
            reason = outcome["reason"]["detail"] if outcome["reason"] else outcome["state"]
            context.say(f"  {name}: lost: {reason}", "red")
        elif outcome["broken"]:
            context.say(f"  {name}: done by {outcome['finish']} instead of {outcome['promised_finish']}", "yellow")
        else:
            context.say(f"  {name}: done by {outcome['finish']}, as promised")
    if done["preview"]:
        context.say("a preview: nothing was changed")
