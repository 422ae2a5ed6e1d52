# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: lines to messages (https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as we use it)."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Message(NamedTuple):
    """An event of a stream."""

    id: str | None
    event: str
    data: str


def messages(lines: Iterable[str]) -> Iterator[Message]:
    """Parse messages. Comments are skipped; a message cut off by the end of the stream is dropped, because the broker sends it again.

    An id alone yields a message without data: it marks where to continue.
    """
    last_id: str | None = None
    event, data, new_id = "message", list[str](), False
    for line in lines:
        if not line:
            if data or new_id:
                yield Message(last_id, event, "\n".join(data))
            event, data, new_id = "message", [], False
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            last_id, new_id = value, True
