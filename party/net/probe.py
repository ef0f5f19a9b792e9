"""Why a peer was not reached, found out with the standard library's TLS: gRPC says no more than that it was not."""

from __future__ import annotations

import socket
import ssl

from jobs.errors import Problem
from party.net.ways import UNIX
from party.owner.config import RELAYED, NodeConfig
from party.owner.identity import Peer

_PROBE_S = 2.0


def probe(config: NodeConfig, peer: Peer, address: str, target: str | None = None) -> Problem:
    """Call a peer once more, and tell what is in the way: the network, another certificate, or the peer itself.

    target:  what is called instead of its address, if somebody is in between (:mod:`party.net.ways`).
    """
    try:
        if _answers(config, peer, target or address):
            return unreached(config, peer.name, address, "no answer")
    except ssl.SSLCertVerificationError:
        return _other_certificate(config, peer.name, address)
    except (ssl.SSLError, ConnectionResetError):
        pass
    except OSError as error:
        return unreached(config, peer.name, address, error.strerror or "no answer")
    return _turned_away(config, peer.name, address)


def _answers(config: NodeConfig, peer: Peer, target: str) -> bool:
    """The peer speaks to us once TLS stands. A server that refuses our certificate hangs up only now."""
    with (
        _connected(target) as raw,
        _context(config, peer).wrap_socket(raw, server_hostname=peer.name) as stream,
    ):
        return bool(stream.recv(1))


def _connected(target: str) -> socket.socket:
    """A connection to host:port or to a socket of our own."""
    if not target.startswith(UNIX):
        host, port = target.rsplit(":", 1)
        return socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S)
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(_PROBE_S)
    try:
        raw.connect(target.removeprefix(UNIX))
    except OSError:
        raw.close()
        raise
    return raw


def _context(config: NodeConfig, peer: Peer) -> ssl.SSLContext:
    """TLS as gRPC would speak it to this peer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=peer.certificate.decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return context


def unreached(config: NodeConfig, peer: str, address: str, reason: str) -> Problem:
    """That a peer was not reached, and what was in the way."""
    shown, private = _place(config, peer, address)
    me = config.name
    return Problem(
        "peer-unreachable",
        f"{me} cannot reach {peer}{shown}: {reason}",
        party=peer,
        private=private,
        remedy=_remedy(config, peer, address),
    )


def _remedy(config: NodeConfig, peer: str, address: str) -> str:
    """What to look at where a peer was not reached."""
    me, through = config.name, " and `proxy`" if config.proxy else ""
    if address == RELAYED:
        return f"at {me}: check `relay`{through}; at {peer}: check that it runs, and its `relay`"
    return f"at {me}: check the address of {peer} in `peers`{through}; at {peer}: check that it runs, and `listen`"


def _other_certificate(config: NodeConfig, peer: str, address: str) -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    message = f"{peer}{shown} presented another certificate than the one installed for it at {me}"
    return Problem("identity-mismatch", message, party=peer, private=private)


def _turned_away(config: NodeConfig, peer: str, address: str) -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    message = (
        f"{peer}{shown} refused the TLS connection of {me}; it may not have the certificate of {me} installed, "
        "or its clock may say that this is not valid"
    )
    return Problem("tls-failed", message, party=peer, private=private)


def _place(config: NodeConfig, peer: str, address: str) -> tuple[str, str]:
    """Where a peer was called, for everybody and for the owner: what only our own `peers` say is the owner's."""
    if address == RELAYED:
        return " through the relay", f"at {config.relay.address}" if config.relay else ""
    entry = config.peers.get(peer)
    own = entry is not None and entry.address == address
    return ("", f"at {address}") if own else (f" at {address}", "")
