"""Versions of TLS that a daemon takes: 1.3 alone (docs/security.md A3)."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from tests.support.network import Network, processes, sample_network

A, B = "hospital-a", "hospital-b"


def handshake(net: Network, version: ssl.TLSVersion) -> str | None:
    """Return the outcome of a handshake by a peer with an installed certificate that speaks one version only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(net.root / A / "tls" / "certificate.pem")
    context.load_cert_chain(net.root / B / "tls" / "certificate.pem", net.root / B / "tls" / "key.pem")
    host, port = net.addresses[A].rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=A) as stream,
    ):
        return stream.version()


def test_a_daemon_takes_tls_1_3_alone(tmp_path: Path) -> None:
    net = sample_network(tmp_path)
    with processes(net, [A]):
        assert handshake(net, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
        with pytest.raises(ssl.SSLError):
            handshake(net, ssl.TLSVersion.TLSv1_2)
