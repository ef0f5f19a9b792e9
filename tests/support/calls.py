"""Calls to daemons over real streams: by their own client, with other identities, or without manners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from jobs.errors import PartyError, Problem
from party.net.client import Calls
from party.owner.config import CoordinatorConfig, NodeConfig, credentials_of, load_config, peers_of
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import Network
from tests.support.samples import PARTIES

A, B, C = PARTIES


def impatient(config: Any, seconds: float = 0.5) -> Any:
    return config.model_copy(update={"timeouts": config.timeouts.model_copy(update={"connect_s": seconds})})


@asynccontextmanager
async def calling(config: NodeConfig) -> AsyncIterator[Calls]:
    calls = Calls(config, credentials_of(config), peers_of(config))
    try:
        yield calls
    finally:
        await calls.close()


async def refused(work: Coroutine[Any, Any, Any]) -> Problem:
    with pytest.raises(PartyError) as caught:
        await work
    return caught.value.problem


def coordinator_as(net: Network, name: str, **credentials: Any) -> CoordinatorConfig:
    """The coordinator's configuration with another identity."""
    write_credentials(net.root / "other", certificate_for([name], **credentials))
    tls = {"certificate": "../other/certificate.pem", "key": "../other/key.pem"}
    net.change("coordinator", lambda fields: fields.update(tls=tls, name=name))
    return load_config(CoordinatorConfig, net.config_path("coordinator"))


AUTHORITY = certificate_for(["authority"])


def issued(net: Network, name: str, to: str | None = None) -> dict[str, str]:
    """A new certificate of the authority for ``name``, as the `tls` of a configuration; or installed at ``to``."""
    folder = net.root / f"issued-{name}-{to}"
    paths = write_credentials(folder, certificate_for([name], issuer=AUTHORITY))
    return dict(zip(("certificate", "key"), map(str, paths), strict=True))


@asynccontextmanager
async def raw(net: Network, caller: str, callee: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel with a peer's identity and no manners."""
    own = credentials_of(net.config(caller) if caller in PARTIES else net.coordinator)
    root = (net.root / callee / "tls" / "certificate.pem").read_bytes()
    secure = grpc.ssl_channel_credentials(root, own.key, own.certificate)
    async with grpc.aio.secure_channel(
        net.addresses[callee], secure, [("grpc.ssl_target_name_override", callee)]
    ) as channel:
        yield channel
