"""`party serve`: the daemon as a process."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crypto.rng import SystemRng
from jobs.errors import ConfigError
from jobs.release.folder import sweep
from jobs.version import __version__
from party.cli.arguments import config_option
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, json_unless_watched, say, set_up_logs
from party.compiling import compile_where_it_pays, prepare
from party.daemon import Daemon
from party.decoding import READER
from party.net.server import PartyServer
from party.net.streams import raise_file_limit
from party.owner.accounts import RELEASES, give_up
from party.owner.audit import Audit, policy_digest
from party.owner.beginning import Beginnings
from party.owner.config import PartyConfig, load_config

if TYPE_CHECKING:
    from party.web.server import WebServer

log = logging.getLogger("party")

_IDLE_S = 5.0
"""Time after which a daemon prepares for jobs. A simulation has begun its job by then."""


@click.command()
@config_option
@format_option
def serve(config: Path) -> None:
    """Run the daemon until you stop it.

    Without a terminal on standard error, everything it says is JSON lines.
    """
    READER.start()  # before keys are in memory, and before gRPC starts threads
    json_unless_watched()
    set_up_logs()
    compile_where_it_pays()
    asyncio.run(_serve(load_config(PartyConfig, config), config))


async def _serve(config: PartyConfig, path: Path) -> None:
    stop = stop_signals()
    warn_of_certificates(config)
    raise_file_limit()
    server = PartyServer(config, Daemon, path)
    page = _page(config, server)
    address = await server.start()  # from here on the state folder is ours alone
    audit = Audit(config.state_dir, SystemRng())
    audit.note("serve", {"version": __version__, "policy_sha256": policy_digest(config)})
    if Beginnings(config.state_dir).keep(audit.beginning()) != audit.beginning():
        log.warning("the audit was begun anew: see `party audit verify`")
    if n_left := sweep(config.state_dir / RELEASES):
        log.warning("removed %d releases that runs killed earlier left unfinished", n_left)
    if n_left := give_up(config.state_dir):
        log.warning("accounts that an earlier daemon did not finish: %d; shown by `party accounts`", n_left)
    if page is not None:
        page.start()
    say(
        f"{config.name} listens on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    asyncio.get_running_loop().call_later(_IDLE_S, prepare)
    await stop.wait()
    if page is not None:
        await page.stop()
    await server.stop()
    audit.note("stop", {})


def _page(config: PartyConfig, server: PartyServer) -> WebServer | None:
    """Return the owner's page, if configured. Raises ConfigError without the packages of the page."""
    if config.web is None:
        return None
    try:
        from party.web.server import WebServer
    except ModuleNotFoundError as error:
        raise ConfigError(
            "extra-missing",
            f"`web` in the configuration needs the package {error.name}",
            remedy="pip install 'jointcut[web]', or leave `web` out",
        ) from error
    return WebServer(config, config.web.listen, server.config_in_force, server.current)


def stop_signals() -> asyncio.Event:
    """Return an event, set by the first stop signal. The second signal ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def first() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in numbers:
        loop.add_signal_handler(number, first)
    return stop
