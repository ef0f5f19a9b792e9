"""Monitors of daemons, and requests to them."""

from __future__ import annotations

from http.client import HTTPConnection

from tests.support.loopback import free_ports
from tests.support.network import GUARD_S, Network


def asked(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(*address.rsplit(":", 1), timeout=GUARD_S)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def watched(net: Network, name: str) -> str:
    """Give a daemon a monitor; return its address."""
    (port,) = free_ports([name]).values()
    net.change(name, lambda fields: fields.update(monitor=f"127.0.0.1:{port}"))
    return f"127.0.0.1:{port}"
