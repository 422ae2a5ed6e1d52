# SPDX-License-Identifier: Apache-2.0
"""What the agent on a host says it can do, read out of the JSON that it reports. What it does not say is taken for possible."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.core.transfer import Mode


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`modes`: those it carries out; `mechanisms`: name -> why not, "" where it can. None: the agent did not say."""

    modes: frozenset[str] | None = None
    mechanisms: Mapping[str, str] | None = None

    def carries_out(self, mode: Mode) -> bool:
        """Can its agent carry out transfers of this mode?"""
        return self.modes is None or mode in self.modes

    def why_not(self, mechanism: str) -> str | None:
        """The reason why a mechanism cannot be used there, None when it can."""
        if self.mechanisms is None:
            return None
        return self.mechanisms.get(mechanism, "its agent does not know it") or None

    def available(self) -> list[str]:
        """The mechanisms that can be used, as far as they are known."""
        return [name for name, reason in (self.mechanisms or {}).items() if not reason]


UNKNOWN = Capabilities()


def read_capabilities(capabilities: Mapping[str, Any] | None) -> Capabilities:
    """Agents report mechanisms as [{name, available, reason}]; those before 0.4 as a list of names. Anything else says nothing."""
    said = capabilities or {}
    modes, mechanisms = said.get("modes"), said.get("mechanisms")
    known_modes = frozenset(mode for mode in modes if isinstance(mode, str)) if isinstance(modes, list) else None
    if not isinstance(mechanisms, list):
        return Capabilities(known_modes or None)
    reasons: dict[str, str] = {}
    for item in mechanisms:
        if isinstance(item, str):
            reasons[item] = ""
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            reasons[item["name"]] = "" if item.get("available") is True else str(item.get("reason") or "it says no reason")[:500]
    return Capabilities(known_modes or None, reasons or None)


def have_changed(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    """Does what admission looks at differ? Reasons may be worded anew every time: they do not count."""
    was, now = read_capabilities(before), read_capabilities(after)
    same_mechanisms = set(was.mechanisms or {}) == set(now.mechanisms or {}) and was.available() == now.available()
    return was.modes != now.modes or not same_mechanisms
