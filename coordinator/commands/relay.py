"""`coordinator relay`: connect parties that accept no connections."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import click

from coordinator.arguments import config_option
from coordinator.relay import Relay
from jobs.version import __version__
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, json_unless_watched, say, set_up_logs
from party.cli.serve import stop_signals
from party.net.streams import raise_file_limit
from party.owner.config import CoordinatorConfig, load_config


@click.command()
@config_option
@click.option("--listen", required=True, help="host:port to listen on.")
@format_option
def relay(config: Path, listen: str) -> None:
    """Connect parties that accept no calls with whoever calls them.

    Whoever is in `peers` may come: parties wait, all may call. What they say stays between them. Runs until it is
    told to stop.
    """
    json_unless_watched()
    set_up_logs()
    asyncio.run(_serve(config, listen))


async def _serve(path: Path, listen: str) -> None:
    stop = stop_signals()
    config = load_config(CoordinatorConfig, path)
    warn_of_certificates(config)
    raise_file_limit()
    relay = Relay(path, listen)
    say(
        f"{config.name} connects {len(config.peers)} peers on {relay.address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": relay.address},
    )
    serving = asyncio.create_task(relay.serve())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
