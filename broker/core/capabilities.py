# SPDX-License-Identifier: Apache-2.0
"""The capabilities that the agent on a host reports, parsed from its JSON. One that is not reported counts as available."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from broker.core.transfer import Mode

PEER = "peer"  # as the address of a rule: the other host of the transfer
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
        """Parse PORT or FIRST-LAST; None means every port. Raises ValueError."""
        if not text:
            return cls()
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class ObserveRule:
    """Packets that a host allows to be observed (`bwb-agent run --observe`), in the agent's spelling; all three fields are checked."""

    address: str  # PEER, or an IP network
    source_ports: str | None = None
    destination_ports: str | None = None

    @classmethod
    def parse(cls, document: Any) -> "ObserveRule | None":
        """The rule in `document`, or None if it is not a valid rule."""
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
        """The JSON that the agent reports."""
        values = {"address": self.address, "source_ports": self.source_ports, "destination_ports": self.destination_ports}
        return {name: value for name, value in values.items() if value is not None}


# The rules of an agent that reports none: the same as the default of `bwb-agent run --observe`.
DEFAULT_RULES = (ObserveRule(PEER, None, "1024-65535"),)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`modes`: the modes that the agent supports; `mechanisms`: name -> reason why unavailable, "" if available. None: not reported.

    `document`: the complete report, for display only.
    """

    modes: frozenset[str] | None = None
    mechanisms: Mapping[str, str] | None = None
    observe: tuple[ObserveRule, ...] = DEFAULT_RULES
    document: Mapping[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> "Capabilities":
        """Parse any JSON from the API or the database. Parts that are not understood count as not reported."""
        said = document or {}
        modes = said.get("modes")
        known_modes = frozenset(mode for mode in modes if isinstance(mode, str)) if isinstance(modes, list) else frozenset()
        return cls(known_modes or None, _parse_mechanisms(said.get("mechanisms")), _parse_rules(said), document)

    def carries_out(self, mode: Mode) -> bool:
        """True if the agent can carry out transfers of this mode."""
        return self.modes is None or mode in self.modes

    def why_not(self, mechanism: str) -> str | None:
        """The reason why the host cannot use a mechanism, or None if it can."""
        if self.mechanisms is None:
            return None
        return self.mechanisms.get(mechanism, "its agent does not know it") or None

    def available(self) -> list[str]:
        """The names of the mechanisms that the host can use, as far as reported."""
        return [name for name, reason in (self.mechanisms or {}).items() if not reason]

    def differs(self, other: "Capabilities") -> bool:
        """True if fields that the desk uses differ. Reasons do not count, because their wording may change with every report."""
        same_mechanisms = set(self.mechanisms or {}) == set(other.mechanisms or {}) and self.available() == other.available()
        return self.modes != other.modes or not same_mechanisms


UNKNOWN = Capabilities()


def _parse_mechanisms(said: Any) -> Mapping[str, str] | None:
    """Agents report [{name, available, reason}]; agents before 0.4 report a list of names."""
    reasons: dict[str, str] = {}
    for item in said if isinstance(said, list) else ():
        if isinstance(item, str):
            reasons[item] = ""
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            why = str(item.get("reason") or "it says no reason")[:_MAX_REASON]
            reasons[item["name"]] = "" if item.get("available") is True else why
    return reasons or None


def _parse_rules(said: Mapping[str, Any]) -> tuple[ObserveRule, ...]:
    """An invalid rule allows nothing."""
    if "observe" not in said:
        return DEFAULT_RULES
    rules = said["observe"]
    return tuple(rule for item in rules if (rule := ObserveRule.parse(item)) is not None) if isinstance(rules, list) else ()
