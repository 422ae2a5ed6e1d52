# SPDX-License-Identifier: Apache-2.0
"""Stands before the UDP port of an agent and loses the first GO that comes: `lossy.py HOST:PORT TARGET_HOST:PORT`.

Run by test_chain.py in a host's namespace. Each sender gets a socket of its own towards the agent, so that answers find back.
"""

import selectors
import socket
import sys

_KIND, _GO = 5, 3


def main() -> None:
    listen, target = (_address(text) for text in sys.argv[1:3])
    front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    front.bind(listen)
    select = selectors.DefaultSelector()
    select.register(front, selectors.EVENT_READ)
    towards: dict[tuple[str, int], socket.socket] = {}
    lost = False
    print("ready", flush=True)
    while True:
        for key, _ in select.select():
            if key.fileobj is not front:
                front.sendto(key.fileobj.recv(2048), key.data)  # type: ignore[union-attr]
                continue
            datagram, sender = front.recvfrom(2048)
            if datagram[_KIND] == _GO and not lost:
                lost = True
                print(f"lost a GO from {sender[0]}", flush=True)
                continue
            if sender not in towards:
                towards[sender] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                towards[sender].connect(target)
                select.register(towards[sender], selectors.EVENT_READ, sender)
            towards[sender].send(datagram)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    main()
