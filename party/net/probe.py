"""Reason that a peer was not reached, found with the standard library's TLS. gRPC does not give the reason."""

from __future__ import annotations

import ssl

from jobs.errors import Problem
from party.net.tls import context_to
from party.net.ways import Way
from party.owner.config import NodeConfig
from party.owner.identity import Peer


def probe(config: NodeConfig, peer: Peer, address: str, way: Way) -> Problem:
    """Call a peer again, and return the obstacle: the way, the network, another certificate, or the peer itself."""
    reason = ""
    if way.obstacle is None:
        try:
            reason = _reason(config, peer, way)
        except ssl.SSLCertVerificationError:
            return _other_certificate(config, peer.name, address)
        except OSError as error:
            reason = error.strerror or "no answer"
    if way.obstacle is not None:  # perhaps found meanwhile
        return _unreached(config, peer.name, address, way.obstacle.reason, way.obstacle.remedy)
    if reason:
        return _unreached(config, peer.name, address, reason)
    return _turned_away(config, peer.name, address)


def _reason(config: NodeConfig, peer: Peer, way: Way) -> str:
    """Return the reason, empty if the peer hangs up once TLS stands: only then a server refuses our certificate."""
    context = context_to(config, peer)
    context.set_alpn_protocols(["h2"])  # as gRPC
    with way.connect(way.patience_s) as raw:
        try:
            stream = context.wrap_socket(raw, server_hostname=peer.name)
        except ssl.SSLCertVerificationError:
            raise
        except (ssl.SSLError, ConnectionResetError):
            return "the TLS handshake broke off: perhaps a different service answers"
        with stream:
            try:
                return "no answer" if stream.recv(1) else ""
            except (ssl.SSLError, ConnectionResetError):
                return ""


def _unreached(config: NodeConfig, peer: str, address: str, reason: str, remedy: str = "") -> Problem:
    shown, private = _place(config, peer, address)
    me = config.name
    return Problem(
        "peer-unreachable",
        f"{me} cannot reach {peer}{shown}: {reason}",
        party=peer,
        private=private,
        remedy=_placed(me, peer, remedy)
        if remedy
        else f"at {me}: check the address of {peer} in `peers`; at {peer}: "
        "check that the daemon runs, and `listen`",
    )


def _placed(me: str, peer: str, remedy: str) -> str:
    """Return a remedy with its place: ours, unless the remedy names a place."""
    named = remedy.replace("at the party: ", f"at {peer}: ")
    return named if named.startswith("at ") else f"at {me}: {named}"


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
