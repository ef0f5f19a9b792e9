"""`grpc.health.v1` for peers: SERVING until the daemon is about to stop. Needs `jointcut[monitor]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from jobs.errors import IdentityError

_SERVICES = ("", "jointcut.v1.Control", "jointcut.v1.Mesh")


_Servicer: Any = health.aio.HealthServicer  # type: ignore[attr-defined]  # missing in the stubs


class Health(_Servicer):  # type: ignore[misc]
    """Health of a daemon. Only installed peers hear it."""

    def __init__(self, identify: Callable[[Any], str]) -> None:
        """``identify``: names the peer of a call. Raises IdentityError."""
        super().__init__()
        self._identify = identify

    async def add_to(self, server: grpc.aio.Server) -> None:
        """Answer at a server, before its start."""
        for name in _SERVICES:
            await self.set(name, health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    async def Check(self, request: Any, context: Any) -> Any:
        await self._require_known(context)
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:
        await self._require_known(context)
        await super().Watch(request, context)

    async def _require_known(self, context: Any) -> None:
        """End the call of a stranger: ``abort`` raises."""
        try:
            self._identify(context)
        except IdentityError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, error.problem.for_others())
