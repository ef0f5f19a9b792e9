"""Programs started by way of a fork, in a process with a gRPC server that answers meanwhile."""

from __future__ import annotations

import subprocess
import sys

from tests.support.network import GUARD_S

STARTING = """
import party.net  # noqa: F401  before gRPC, as everywhere
import asyncio, subprocess
import grpc, grpc.aio

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.answer)

    async def answer(self, request, context):
        return request

def started():
    # A function between fork and exec lets Python fork and not vfork: handlers of forks run.
    return {subprocess.Popen(["true"], preexec_fn=lambda: None).wait() for _ in range(150)}

async def main():
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/any/echo")
        starting = asyncio.create_task(asyncio.to_thread(started))
        while not starting.done():
            assert await call(b"x") == b"x"
    await server.stop(None)
    print(*starting.result())

asyncio.run(main())
"""


def test_no_handler_of_grpc_ends_a_started_program() -> None:
    """Spark starts Java this way in a daemon."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING], capture_output=True, text=True, timeout=GUARD_S, check=True
    )
    assert done.stdout == "0\n"
