# SPDX-License-Identifier: Apache-2.0
"""What the agent on a host says it can do, parsed once out of the JSON that it reports. What it does not say is taken for possible."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from broker.core.transfer import Mode

PEER = "peer"  # as the address of a rule: the transfer's other host
_LAST_PORT = 65_535
_MAX_REASON = 500  # characters


@dataclass(frozen=True, slots=True)
class Ports:
    """A range of ports, both ends included."""

    first: int = 0
    last: int = _LAST_PORT

    def __contains__(self, inner: "Ports") -> bool:
        return self.first <= inner.first and inner.last <= self.last

    @classmethod
    def of(cls, text: str | None) -> "Ports":
        """PORT or FIRST-LAST; every port where there is no text. Raises ValueError."""
        if not text:
            return cls()
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class ObserveRule:
    """Packets that a host lets be observed (`bwb-agent run --observe`), as the agent spells them: all three are checked, and shown as they are."""

    address: str  # PEER, or an IP network
    source_ports: str | None = None
    destination_ports: str | None = None

    @classmethod
    def parse(cls, document: Any) -> "ObserveRule | None":
        """None: that is no rule."""
        if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
            return None
        rule = cls(document.get("address", ""), document.get("source_ports"), document.get("destination_ports"))
        try:
            Ports.of(rule.source_ports)
            Ports.of(rule.destination_ports)
            if rule.address != PEER:
                ip_network(rule.address, strict=False)
        except ValueError:
            return None
        return rule

    def document(self) -> dict[str, str]:
        """As the agent reports it."""
        values = {"address": self.address, "source_ports": self.source_ports, "destination_ports": self.destination_ports}
        return {name: value for name, value in values.items() if value is not None}


# What an agent allows that does not say so: the same as the default of `bwb-agent run --observe`.
DEFAULT_RULES = (ObserveRule(PEER, None, "1024-65535"),)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`modes`: those it carries out; `mechanisms`: name -> why not, "" where it can. None: the agent did not say.

    `document`: all that it reported, for people to look at; nothing is decided by it.
    """

    modes: frozenset[str] | None = None
    mechanisms: Mapping[str, str] | None = None
    observe: tuple[ObserveRule, ...] = DEFAULT_RULES
    document: Mapping[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> "Capabilities":
        """Of the JSON that the API takes and the database keeps, whatever it is: what is not understood says nothing."""
        said = document or {}
        modes = said.get("modes")
        known_modes = frozenset(mode for mode in modes if isinstance(mode, str)) if isinstance(modes, list) else frozenset()
        return cls(known_modes or None, _parse_mechanisms(said.get("mechanisms")), _parse_rules(said), document)

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

    def differs(self, other: "Capabilities") -> bool:
        """Does what the desk looks at differ? Reasons may be worded anew every time: they do not count."""
        same_mechanisms = set(self.mechanisms or {}) == set(other.mechanisms or {}) and self.available() == other.available()
        return self.modes != other.modes or not same_mechanisms


UNKNOWN = Capabilities()


def _parse_mechanisms(said: Any) -> Mapping[str, str] | None:
    """Agents report [{name, available, reason}]; those before 0.4 a list of names."""
    reasons: dict[str, str] = {}
    for item in said if isinstance(said, list) else ():
        if isinstance(item, str):
            reasons[item] = ""
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            why = str(item.get("reason") or "it says no reason")[:_MAX_REASON]
            reasons[item["name"]] = "" if item.get("available") is True else why
    return reasons or None


def _parse_rules(said: Mapping[str, Any]) -> tuple[ObserveRule, ...]:
    """What is no rule allows nothing."""
    if "observe" not in said:
        return DEFAULT_RULES
    rules = said["observe"]
    return tuple(rule for item in rules if (rule := ObserveRule.parse(item)) is not None) if isinstance(rules, list) else ()
