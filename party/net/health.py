"""`grpc.health.v1`: whether this party would take a job, for its peers and nobody else.

Strangers do not come past TLS, and probes of an orchestrator have no certificate of a peer: those ask over HTTP, on
loopback. A peer learns here what its next job would tell it. There is no `Watch`: nothing is kept open for whoever
waits for a change, and a peer that is removed hears nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from jobs.errors import IdentityError

SERVICES = ("", "jointcut.v1.Control", "jointcut.v1.Mesh")
"""Who can be asked about; the first is the daemon as a whole. They live and die together."""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # generated stubs have no types
    """Answers peers."""

    def __init__(self, ready: Callable[[], bool], identify: Callable[[Any], str]) -> None:
        """``ready`` may read files. ``identify`` raises IdentityError for who is no peer."""
        self._ready = ready
        self._identify = identify

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> Any:
        try:
            self._identify(context)
        except IdentityError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, error.problem.for_others())
        if request.service not in SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        status = health_pb2.HealthCheckResponse
        ready = await asyncio.to_thread(self._ready)
        return status(status=status.SERVING if ready else status.NOT_SERVING)
