# SPDX-License-Identifier: Apache-2.0
"""Messages between a worker and the process that does a job for it: a length and a pickle, over pipes that nobody else can write to."""

import asyncio
import pickle
from typing import Any, BinaryIO

_LENGTH_BYTES = 8


def send(pipe: BinaryIO, message: Any) -> None:
    """Write one message: its length, then the pickled object."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """The next message; EOFError when there is none any more."""
    length = pipe.read(_LENGTH_BYTES)
    if len(length) < _LENGTH_BYTES:
        raise EOFError
    return pickle.loads(pipe.read(int.from_bytes(length, "big")))  # noqa: S301  the other end is a process of ours


async def send_to(writer: asyncio.StreamWriter, message: Any) -> None:
    """As `send`, without blocking the loop."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    writer.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    await writer.drain()


async def receive_from(reader: asyncio.StreamReader) -> Any:
    """The next message; asyncio.IncompleteReadError when the other end is gone."""
    length = await reader.readexactly(_LENGTH_BYTES)
    return pickle.loads(await reader.readexactly(int.from_bytes(length, "big")))  # noqa: S301  the other end is a process of ours
