"""`coordinator relay`: a relay for parties that accept no connection."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path

import click

from coordinator.arguments import config_option
from coordinator.relay import Relay, roster_of
from jobs.errors import ConfigError, PartyError
from jobs.file.fields import check_address
from jobs.version import __version__
from party.cli.certificates import warn_daily, warn_of_certificates
from party.cli.console import format_option, json_unless_watched, say, set_up_logs
from party.cli.signals import Reloading, stop_signals
from party.net.streams import raise_file_limit
from party.net.waiting import stopped
from party.owner.config import CoordinatorConfig, load_config

log = logging.getLogger("coordinator")


@click.command()
@click.option("--listen", required=True, help="host:port to listen on, reached by all parties.")
@config_option
@format_option
def relay(listen: str, config: Path) -> None:
    """Join parties that accept no connection from outside.

    The peers in the configuration may use the relay. The relay sees their names, times and sizes, and nothing else.

    SIGHUP reads the peers and their certificates again, and says what changed. Connections of removed peers end.
    """
    try:
        check_address(listen)
    except ValueError as error:
        raise ConfigError("usage", f"--listen {listen}: {error}") from error
    json_unless_watched()
    set_up_logs()
    asyncio.run(_serve(load_config(CoordinatorConfig, config), config, listen))


async def _serve(config: CoordinatorConfig, path: Path, listen: str) -> None:
    stop = stop_signals()
    warn_of_certificates(config)
    raise_file_limit()
    relay = Relay(config)
    reloading = Reloading(partial(_reload, relay, path))
    address = await relay.start(listen)
    say(
        f"{config.name} relays on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    warning = asyncio.create_task(warn_daily(partial(load_config, CoordinatorConfig, path)))
    await stop
    await stopped(warning)
    await reloading.stop()
    await relay.stop()


async def _reload(relay: Relay, path: Path) -> None:
    """Take over the peers of the configuration now, and say what changed."""
    try:
        config = await asyncio.to_thread(load_config, CoordinatorConfig, path)
        changes = await relay.adopt(await asyncio.to_thread(roster_of, config))
        log.info("reloaded: %s", changes)
        await asyncio.to_thread(warn_of_certificates, config)
    except PartyError as error:
        log.error("%s", error.problem.text(to_owner=True))
