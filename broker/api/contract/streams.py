# SPDX-License-Identifier: Apache-2.0
"""Server-sent events in the contract: what a message holds, and the names of all events.

OpenAPI 3.1 has no word for a stream: its schema is the list of its messages, as in 3.2, each with its fields; `data` is sent as JSON on one line.
"""

from broker.api.contract.parts import Part

# Add to the list; never change a name. Clients pass over names that they do not know.
EVENTS = {
    "transfer.admitted": "it was booked",
    "transfer.committed": "a held booking became a reservation",
    "transfer.started": "its sender began",
    "transfer.changed": "somebody changed it",
    "transfer.paused": "it gave back what was booked, until it is resumed",
    "transfer.resumed": "the rest was booked anew",
    "transfer.rebooked": "it was behind, and the rest was booked anew",
    "transfer.replanned": "the rest has another plan, after a loss of capacity or by a re-optimisation",
    "transfer.pulled_forward": "it moved into capacity that became free",
    "transfer.displacing": "it displaced best-effort transfers",
    "transfer.preempted": "one of higher priority displaced it",
    "transfer.released": "its booking had been used up when its link lost capacity",
    "transfer.delayed": "it waits longer for the transfer before it",
    "transfer.moved_up": "it starts earlier, as the one before it will end earlier",
    "transfer.handed_over": "the one before it ended, and it may start",
    "transfer.rechained": "it starts after another transfer than before",
    "transfer.unchained": "it starts by its own plan, after nobody",
    "transfer.signal": "what its start signal did, as its host tells",
    "transfer.unheard": "its agents should have been heard and were not",
    "transfer.heard": "they were heard again",
    "transfer.given_back": "it was never heard of again, and what was booked is free",
    "transfer.finished": "it is complete",
    "transfer.failed": "it ended without being complete",
    "transfer.canceled": "somebody canceled it",
    "transfer.expired": "its hold ran out, or no agent fetched it",
    "link.created": "",
    "link.changed": "",
    "link.deleted": "",
    "window.created": "a maintenance window, an outage or background traffic",
    "window.removed": "",
    "node.changed": "its name or its place",
    "host.enrolled": "its agent joined, perhaps again",
    "host.changed": "it was drained, or takes transfers again",
    "host.removed": "",
    "enrolment_token.created": "",
    "enrolment_token.revoked": "",
    "token.created": "",
    "token.changed": "its limits",
    "token.revoked": "",
    "session.opened": "somebody signed in",
    "session.closed": "somebody signed out",
    "job.queued": "",
    "job.started": "",
    "job.done": "its result is there",
    "job.failed": "",
    "job.canceling": "it is to stop",
    "job.canceled": "",
    "job.applied": "the plan that it found was booked",
}
CONTROL = {
    "reset": "the broker cannot go on behind Last-Event-ID; it goes on from now, and what was learnt from the stream must be read anew",
    "resume": "you read too slowly, and the stream ends: connect again with the id that came with it",
}


def _ref(name: str) -> Part:
    return {"$ref": f"#/components/schemas/{name}"}


def stream_of(message: str) -> Part:
    """The response of a stream."""
    schema = {"type": "array", "items": _ref(message)}
    return {"description": "The stream; it does not end by itself.", "content": {"text/event-stream": {"schema": schema}}}


def schemas() -> dict[str, Part]:
    """What streams alone refer to."""
    names = EVENTS | CONTROL
    listed = "".join(f"\n- `{name}`{': ' if meaning else ''}{meaning}" for name, meaning in names.items())
    about = f"Names of events. `action` of an event in lists is one of them, but for the last two.\n{listed}"
    identity = {"type": "string", "description": "for Last-Event-ID"}
    revision = {"type": "integer", "description": "of its assignments, as they are now"}
    return {
        "EventName": {"type": "string", "enum": list(names), "description": about},
        "EventMessage": {
            "description": "One message, by the fields of text/event-stream. One without `event` and `data` only moves the id on.",
            "type": "object",
            "properties": {"id": identity, "event": _ref("EventName"), "data": _ref("EventOut")},
            "required": ["id"],
        },
        "RevisionMessage": {
            "description": "One message, by the fields of text/event-stream. Between messages come comments, as signs of life.",
            "type": "object",
            "properties": {"event": {"type": "string", "const": "revision"}, "data": _ref("Revision")},
            "required": ["event", "data"],
        },
        "Revision": {
            "description": "There is something new for an agent.",
            "type": "object",
            "properties": {"revision": revision},
            "required": ["revision"],
        },
    }
