# SPDX-License-Identifier: Apache-2.0
"""From which address a request comes: the connection's, unless that is a proxy of ours which says for whom it asks (BWB_TRUSTED_PROXIES).

Nobody else's X-Forwarded-For is looked at: with it, anyone could count as somebody else, and be limited or be logged in their name.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import ASGIApp, Receive, Scope, Send

_LONGEST_FORWARDED = 2000  # characters of X-Forwarded-For that are looked at, from its end: the nearest proxies write there


class TrustedProxies:
    """Proxies whose X-Forwarded-For is believed."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(network, strict=False) for network in networks]

    def __contains__(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)

    def client(self, peer: str, forwarded: str) -> str:
        """The client behind `peer`: the last forwarded address that is not one of the trusted proxies."""
        address = peer
        for hop in reversed(forwarded[-_LONGEST_FORWARDED:].split(",")):
            if address not in self:
                break
            try:
                address = str(ip_address(hop.strip()))
            except ValueError:
                break
        return address


class ClientAddress:
    """Puts the caller's address, and the scheme that he used, where the connection's own are."""

    def __init__(self, app: ASGIApp, trusted: TrustedProxies) -> None:
        self.app = app
        self.trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the client that a trusted proxy names into the scope."""
        if scope["type"] == "http" and scope.get("client") and scope["client"][0] in self.trusted:
            peer, port = scope["client"]
            headers = scope["headers"]
            forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
            scope["client"] = (self.trusted.client(peer, forwarded), port)
            if any(name == b"x-forwarded-proto" and value.strip() == b"https" for name, value in headers):
                scope["scheme"] = "https"
        await self.app(scope, receive, send)


@lru_cache(maxsize=10_000)
def neighbourhood(address: str) -> str:
    """Whom a limit for each address counts together: with IPv6 one subscriber has 2^64 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or ip_network((parsed, 64), strict=False))
    return str(parsed)


def address_of(scope: Scope) -> str:
    """The client's address; empty for a unix socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""
