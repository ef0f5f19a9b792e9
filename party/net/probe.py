"""Reason that a peer was not reached, found with the standard library's TLS. gRPC does not give the reason."""

from __future__ import annotations

import socket
import ssl

from jobs.errors import Problem
from party.owner.config import NodeConfig
from party.owner.identity import Peer

_PROBE_S = 2.0


def probe(config: NodeConfig, peer: Peer, address: str) -> Problem:
    """Call a peer again, and return the obstacle: the network, another certificate, or the peer itself."""
    try:
        if _answers(config, peer, address):
            return _unreached(config, peer.name, address, "no answer")
    except ssl.SSLCertVerificationError:
        return _other_certificate(config, peer.name, address)
    except (ssl.SSLError, ConnectionResetError):
        pass
    except OSError as error:
        return _unreached(config, peer.name, address, error.strerror or "no answer")
    return _turned_away(config, peer.name, address)


def _answers(config: NodeConfig, peer: Peer, address: str) -> bool:
    """Return True if the peer speaks to us once TLS stands. A server refusing our certificate hangs up only now."""
    host, port = address.rsplit(":", 1)
    with (
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S) as raw,
        _context(config, peer).wrap_socket(raw, server_hostname=peer.name) as stream,
    ):
        return bool(stream.recv(1))


def _context(config: NodeConfig, peer: Peer) -> ssl.SSLContext:
    """Return the TLS context that gRPC would use for the peer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=peer.certificate.decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return context


def _unreached(config: NodeConfig, peer: str, address: str, reason: str) -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    return Problem(
        "peer-unreachable",
        f"{me} cannot reach {peer}{shown}: {reason}",
        party=peer,
        private=private,
        remedy=f"at {me}: check the address of {peer} in `peers`; at {peer}: check that the daemon runs, and "
        "`listen`",
    )


def _other_certificate(config: NodeConfig, peer: str, address: str) -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    message = f"{peer}{shown} presented a different certificate than the certificate installed at {me}"
    return Problem("identity-mismatch", message, party=peer, private=private)


def _turned_away(config: NodeConfig, peer: str, address: str) -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    message = (
        f"{peer}{shown} refused the TLS connection of {me}. Perhaps the certificate of {me} is not installed at "
        f"{peer}, or not valid by the clock of {peer}"
    )
    return Problem("tls-failed", message, party=peer, private=private)


def _place(config: NodeConfig, peer: str, address: str) -> tuple[str, str]:
    """Return the called address of a peer, for everybody and for the owner: the entries of `peers` are private."""
    entry = config.peers.get(peer)
    own = entry is not None and entry.address == address
    return ("", f"at {address}") if own else (f" at {address}", "")
