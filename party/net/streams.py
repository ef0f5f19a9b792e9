"""Commons of both ends of a gRPC connection: signs of life, the end of a stream, a lost peer."""

from __future__ import annotations

import resource
from contextlib import suppress

import grpc.aio

from jobs.errors import TransportError
from party.owner.config import NodeConfig

EOF: object = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in the stubs
READ_AHEAD = 4
VERSION = "jointcut-version"
"""Key of the caller's version in the metadata of a job's stream."""
RETRY_S = 0.2
_MAX_BACKOFF_S = 0.5


STREAMS = 16
"""Largest number of open streams of a connection: a job needs three, and identity calls come and go."""
MESSAGE_BYTES = 2 << 20
"""Largest size of a gRPC message to a server: a part of at most 1 MiB with its frame."""


def serving_options(config: NodeConfig) -> list[tuple[str, int]]:
    """Return the server's additional options: bounds on the memory used by strangers and peers."""
    return [
        ("grpc.max_concurrent_streams", STREAMS),
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.server_handshake_timeout_ms", int(config.timeouts.hello_s * 1000)),
    ]


def options_for(config: NodeConfig) -> list[tuple[str, int]]:
    """Return options for signs of life in both directions, so that a lost peer is noticed although nothing is sent.

    The ping timeout counts, too: an unanswered ping of gRPC's own holds back the keepalive pings. No variable of the
    environment leads a connection through a proxy: `proxy` in the configuration decides alone.
    """
    keepalive_ms = int(config.timeouts.keepalive_s * 1000)
    return [
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", 2 * keepalive_ms),
        ("grpc.http2.ping_timeout_ms", 2 * keepalive_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive_ms // 2),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", keepalive_ms // 2),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.initial_reconnect_backoff_ms", int(RETRY_S * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(_MAX_BACKOFF_S * 1000)),
        ("grpc.so_reuseport", 0),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
    ]


def raise_file_limit() -> None:
    """Raise the process's limit of open files to the system's maximum: every connection is an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # as many as before will do
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def lost(peer: str) -> TransportError:
    """Return the error for a peer with a broken stream."""
    return TransportError("peer-lost", f"{peer} went away", party=peer)
