"""Messages of hostile peers to daemons in processes of their own, and the kernel's view of these meanwhile."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc.aio

from protos import jointcut_pb2 as pb
from protos import jointcut_pb2_grpc as rpc
from tests.support import jobs
from tests.support.calls import raw
from tests.support.network import Network, Processes

PIECE = 1 << 20
#: What a daemon may ever hold while a gigabyte is thrown at it: one that has just started holds 130 MB.
MOST_MB = 450


def memory_mb(daemons: Processes, name: str, what: str = "VmRSS") -> float:
    """Resident memory of a daemon now, or (VmHWM) the most it ever had."""
    lines = Path(f"/proc/{daemons.running[name].process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(what)]
    return int(line.split()[1]) / 1024


def encoded_with(job: Mapping[str, Any], further: Mapping[str, Any]) -> bytes:
    """Return a bundle with columns that no job of ours may have."""
    canonical = json.loads(jobs.bundle_of(job).job.canonical())
    canonical["columns"] = {**further, **canonical["columns"]}
    parts = {"bundle": 1, "job": canonical, "files": {}}
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


async def admit(call: Any) -> None:
    """Take a party that was submitted a job to its admission, as a coordinator does whose other parties allow it."""
    assert (await call.read()).WhichOneof("kind") == "allowed"
    await call.write(pb.Request(read=pb.Read()))
    assert (await call.read()).WhichOneof("kind") == "admitted"


def submission(content: bytes, *, last: bool = True, run: bytes | None = None) -> pb.Request:
    piece = pb.Piece(name="bundle", content=content, last=last)
    return pb.Request(submit=pb.Submit(run=run or os.urandom(16), bundle=piece))


@asynccontextmanager
async def conducting(net: Network, caller: str, callee: str) -> AsyncIterator[Any]:
    """A coordinator's stream of any peer."""
    async with raw(net, caller, callee) as channel:
        call = rpc.ControlStub(channel).Conduct()
        yield call
        call.cancel()


async def answer(net: Network, caller: str, callee: str, bundle: bytes) -> pb.Event:
    """Return a party's first answer to a submission."""
    async with conducting(net, caller, callee) as call:
        with suppress(grpc.aio.AioRpcError):
            for start in range(0, len(bundle), PIECE):
                await call.write(submission(bundle[start : start + PIECE], last=start + PIECE >= len(bundle)))
        event: pb.Event = await call.read()
        return event


@contextmanager
def file_limits(soft: int, hard: int | None = None) -> Iterator[None]:
    """Processes started meanwhile may have so many open files, and raise that to ``hard``."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
