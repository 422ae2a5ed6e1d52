# SPDX-License-Identifier: Apache-2.0
"""Calls for operators: hosts, tokens, overview and audit."""

from collections.abc import Mapping, Sequence
from typing import cast

from broker.client.connection import Connection, part
from broker.client.documents import Audit, EnrolmentToken, Host, NewEnrolmentToken, NewToken, Overview, TokenInUse


class Operation(Connection):
    """Hosts, tokens and the overall state."""

    def hosts(self) -> list[Host]:
        """All hosts."""
        return cast(list[Host], self._read("GET", "hosts"))

    def host(self, name: str) -> Host:
        """The host."""
        return cast(Host, self._read("GET", f"hosts/{part(name)}"))

    def enrolment_token(self, host: str, node: str, nic_bps: int, ttl_s: int = 3600) -> NewEnrolmentToken:
        """Create a token with which a host can enrol."""
        body = {"host": host, "node": node, "nic_bps": nic_bps, "ttl_s": ttl_s}
        return cast(NewEnrolmentToken, self._write("POST", "hosts/enrolment-tokens", json=body))

    def enrolment_tokens(self) -> list[EnrolmentToken]:
        """All enrolment tokens."""
        return cast(list[EnrolmentToken], self._read("GET", "hosts/enrolment-tokens"))

    def revoke_enrolment_token(self, token_id: str) -> None:
        """Revoke an enrolment token."""
        self._write("DELETE", f"hosts/enrolment-tokens/{part(token_id)}")

    def remove_host(self, host: str) -> None:
        """Remove a host; the token of its agent becomes invalid."""
        self._write("DELETE", f"hosts/{part(host)}")

    def drain(self, host: str, drained: bool = True) -> Host:
        """Stop giving new transfers to a host; with `drained` False, start again."""
        return cast(Host, self._write("PATCH", f"hosts/{part(host)}", json={"drained": drained}))

    def tokens(self) -> list[TokenInUse]:
        """All tokens with their limits and use."""
        return cast(list[TokenInUse], self._read("GET", "tokens"))

    def token(self, token_id: str) -> TokenInUse:
        """The token with its limits and use."""
        return cast(TokenInUse, self._read("GET", f"tokens/{part(token_id)}"))

    def set_limits(self, token_id: str, limits: Mapping[str, int | str | None]) -> TokenInUse:
        """Set limits by name: a number, "unlimited", or None for the broker's default. Limits not named stay unchanged."""
        return cast(TokenInUse, self._write("PATCH", f"tokens/{part(token_id)}", json={"limits": dict(limits)}))

    def create_token(
        self, name: str, scopes: Sequence[str], expires: str | None = None, limits: Mapping[str, int | str] | None = None
    ) -> NewToken:
        """Create a token; only this answer contains its secret."""
        body = {"name": name, "scopes": list(scopes), "expires": expires, "limits": dict(limits or {})}
        return cast(NewToken, self._write("POST", "tokens", json=body))

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token."""
        self._write("DELETE", f"tokens/{part(token_id)}")

    def overview(self) -> Overview:
        """Promises kept, at risk and broken; requests, transfers, agents and links."""
        return cast(Overview, self._read("GET", "overview"))

    def audit(self) -> Audit:
        """Check the invariants now."""
        return cast(Audit, self._read("GET", "audit"))
