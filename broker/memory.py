# SPDX-License-Identifier: Apache-2.0
"""The memory of the API process: what lives as long as it does is left alone, and what a burst of large batches took goes back."""

import asyncio
import ctypes
import functools
import gc

# A batch of a thousand admissions makes some 30,000 objects, none of them in cycles.
_GC_THRESHOLD = 50_000
_GIVE_BACK_EVERY_S = 10


@functools.cache  # once for each process
def freeze() -> None:
    """What was imported and loaded lives as long as the process: keep the garbage collector from walking it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, 20, 50)


async def give_back() -> None:
    """The C library keeps what is free between two things that are not: 30 MB after eight batches of 5,000. Some milliseconds apart."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    while trim is not None:
        await asyncio.sleep(_GIVE_BACK_EVERY_S)
        await asyncio.to_thread(trim, 0)
