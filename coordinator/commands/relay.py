"""`coordinator relay`: a relay for parties that accept no connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from coordinator.arguments import config_option
from coordinator.relay import Relay
from jobs.errors import ConfigError
from jobs.file.fields import check_address
from jobs.version import __version__
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, json_unless_watched, say, set_up_logs
from party.cli.signals import stop_signals
from party.net.streams import raise_file_limit
from party.owner.config import CoordinatorConfig, load_config


@click.command()
@click.option("--listen", required=True, help="host:port to listen on, reached by all parties.")
@config_option
@format_option
def relay(listen: str, config: Path) -> None:
    """Join parties that accept no connection from outside.

    The peers in the configuration may use the relay. The relay sees their names, times and sizes, and nothing else.
    """
    try:
        check_address(listen)
    except ValueError as error:
        raise ConfigError("usage", f"--listen {listen}: {error}") from error
    json_unless_watched()
    set_up_logs()
    asyncio.run(_serve(load_config(CoordinatorConfig, config), listen))


async def _serve(config: CoordinatorConfig, listen: str) -> None:
    stop = stop_signals()
    warn_of_certificates(config)
    raise_file_limit()
    relay = Relay(config)
    address = await relay.start(listen)
    say(
        f"{config.name} relays on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    await stop
    await relay.stop()
