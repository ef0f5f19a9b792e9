"""The standard library's TLS: the contexts beside gRPC's own."""

from __future__ import annotations

import ssl

from party.owner.config import NodeConfig
from party.owner.identity import Peer


def context_to(config: NodeConfig, peer: Peer) -> ssl.SSLContext:
    """Return the context for calling a peer, with the installed certificate. Reads our files.

    Raises OSError if our files cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=peer.certificate.decode())
    context.load_cert_chain(config.tls.certificate, config.tls.key)
    return context
