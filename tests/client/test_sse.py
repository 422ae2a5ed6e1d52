# SPDX-License-Identifier: Apache-2.0
from broker.client.sse import Message, messages


def test_messages_are_cut_at_blank_lines_and_comments_are_skipped() -> None:
    lines = [
        ": still here",
        "",
        "id: 7-1",
        "event: a",
        "data: {",
        "data: }",
        "",
        "data:x",
        "",
        "event: b",
        "",
        "id: 9",
        "data: lost",
    ]
    assert list(messages(["id: 7-1", ": still here", "", "event: resume", "id: 7-2", ""])) == [
        Message("7-1", "message", ""), Message("7-2", "resume", "")
    ], "where to go on, without an event"  # fmt: skip
    assert list(messages(lines)) == [Message("7-1", "a", "{\n}"), Message("7-1", "message", "x")]
