# SPDX-License-Identifier: Apache-2.0
"""Finds the enrolled hosts that a command line names."""

import re
from collections.abc import Iterable, Mapping


def named_in(arguments: Iterable[str], hosts: Mapping[str, str]) -> list[str]:
    """Names of the hosts that occur in `arguments`, by name or by the host of their data address, in the order of `hosts`.

    `hosts`: name -> HOST:PORT. They are found in `HOST`, `HOST:path`, `user@HOST`, URLs and `--option=HOST`, not within longer
    names.
    """
    words = list(arguments)
    found = []
    for name, address in hosts.items():
        spellings = {name.lower(), host_of(address).lower()} - {""}
        if any(_stands_in(spelling, word.lower()) for spelling in spellings for word in words):
            found.append(name)
    return found


def host_of(address: str) -> str:
    """The host of HOST:PORT, without the brackets of an IPv6 address."""
    host, colon, _ = address.rpartition(":")
    return (host if colon else address).strip("[]")


def _stands_in(name: str, word: str) -> bool:
    # A colon may end a name (HOST:path) or, in IPv6, be a part of it.
    within = r"[\w.:-]" if ":" in name else r"[\w.-]"
    ahead = r"(?<![\w./-])(?<!\w:)" if ":" in name else r"(?<![\w.-])(?<![^/:]/)"
    return re.search(f"{ahead}{re.escape(name)}(?!{within})", word) is not None
