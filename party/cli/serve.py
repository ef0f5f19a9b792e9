"""`party serve`: the daemon as a process."""

from __future__ import annotations

import asyncio
import logging
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crypto.rng import SystemRng
from jobs.errors import BudgetError, ConfigError, PartyError
from jobs.release.folder import sweep
from jobs.version import __version__
from party.cli.arguments import config_option
from party.cli.certificates import warn_daily, warn_of_certificates
from party.cli.console import format_option, json_unless_watched, say, set_up_logs
from party.cli.signals import Reloading, stop_signals
from party.compiling import compile_where_it_pays, prepare
from party.daemon import Daemon
from party.decoding import READER
from party.memory import use_one_arena
from party.net.server import PartyServer
from party.net.streams import raise_file_limit
from party.net.waiting import stopped
from party.owner.accounts import RELEASES, give_up
from party.owner.audit import Audit, policy_digest
from party.owner.beginning import Beginnings
from party.owner.config import PartyConfig, load_config

if TYPE_CHECKING:
    from party.monitor import Monitor
    from party.web.server import WebServer

log = logging.getLogger("party")

_IDLE_S = 5.0
"""Time after which a daemon prepares for jobs. A simulation has begun its job by then."""


@click.command()
@config_option
@format_option
def serve(config: Path) -> None:
    """Run the daemon until you stop it.

    SIGHUP takes over changes of the configuration, its certificates and its policy, and says what changed. SIGTERM
    lets the running job end, for `timeouts.stop_s` at most; SIGINT and a second SIGTERM do not wait. Without a
    terminal on standard error, everything it says is JSON lines.
    """
    use_one_arena()
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
    reloading = Reloading(partial(_reload, server))
    page = _page(config, server)
    monitor = await _monitor(config, server)
    address = await server.start()  # from here on the state folder is ours alone
    try:
        audit = _begun(config)
    except BaseException:
        await server.stop()  # gRPC's server must end before the event loop
        raise
    if page is not None:
        page.start()
    if monitor is not None:
        monitor.start()
    say(
        f"{config.name} listens on {address} (Jointcut {__version__})",
        {"event": "listening", "name": config.name, "address": address},
    )
    asyncio.get_running_loop().call_later(_IDLE_S, prepare)
    warning = asyncio.create_task(warn_daily(server.config_in_force))
    if await stop == signal.SIGTERM:
        await _drained(server)
    await stopped(warning)
    await reloading.stop()
    if page is not None:
        await page.stop()
    if monitor is not None:
        await asyncio.to_thread(monitor.stop)
    await server.stop()
    audit.note("stop", {})


def _begun(config: PartyConfig) -> Audit:
    """Note the start in the audit, and end what an earlier daemon left unfinished. Raises PartyError, OSError."""
    audit = Audit(config.state_dir, SystemRng())
    audit.note("serve", {"version": __version__, "policy_sha256": policy_digest(config)})
    if Beginnings(config.state_dir).keep(audit.beginning()) != audit.beginning():
        log.warning("the audit was begun anew: see `party audit verify`")
    if n_left := sweep(config.state_dir / RELEASES):
        log.warning("removed %d releases that runs killed earlier left unfinished", n_left)
    if n_left := give_up(config.state_dir):
        log.warning("accounts that an earlier daemon did not finish: %d; shown by `party accounts`", n_left)
    _give_up_runs(config)
    return audit


def _give_up_runs(config: PartyConfig) -> None:
    """Note the end of runs that an earlier daemon did not end. A ledger that cannot be used stops jobs, not us."""
    try:
        n_left = config.ledger.give_up(config.name)
    except BudgetError as error:
        log.error("%s", error.problem.text(to_owner=True))
        return
    if n_left:
        log.warning(
            "charges and questions of runs lost with an earlier daemon: %d; see `party budget`", n_left
        )


def _page(config: PartyConfig, server: PartyServer) -> WebServer | None:
    """Return the owner's page, if configured. Raises ConfigError without the packages of the page."""
    if config.web is None:
        return None
    try:
        from party.web.server import WebServer
    except ModuleNotFoundError as error:
        raise _missing("web", error) from error
    return WebServer(config, config.web.listen, server.config_in_force, server.current)


async def _monitor(config: PartyConfig, server: PartyServer) -> Monitor | None:
    """Return the monitor, if configured. Raises ConfigError without the packages of the monitor."""
    if config.monitor is None:
        return None
    try:
        from party.monitor import Monitor

        await server.answer_health()
    except ModuleNotFoundError as error:
        raise _missing("monitor", error) from error
    return Monitor(server.watched(), config.monitor)


def _missing(key: str, error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(
        "extra-missing",
        f"`{key}` in the configuration needs the package {error.name}",
        remedy=f"pip install 'jointcut[{key}]', or leave `{key}` out",
    )


async def _drained(server: PartyServer) -> None:
    """Let the running job end, for ``timeouts.stop_s`` at most; take no further job."""
    patience_s = server.config_in_force().timeouts.stop_s
    if not server.idle:
        log.info(
            "about to stop: the running job has up to %g s; a second signal kills the daemon", patience_s
        )
    try:
        async with asyncio.timeout(patience_s):
            await server.drain()
    except TimeoutError:
        log.warning("the running job did not end within %g s (`timeouts.stop_s`), and is ended", patience_s)


async def _reload(server: PartyServer) -> None:
    """Take over the configuration now, as the next job would, and say what changed."""
    try:
        found = await server.reload()
    except PartyError as error:
        log.error("%s", error.problem.text(to_owner=True))
        return
    if not found:
        log.info("reloaded: nothing has changed")
        return
    peers = f"; peers: {', '.join(found['peers'])}" if "peers" in found else ""
    log.info("reloaded: %s changed%s", ", ".join(found["changed"]), peers)
    warn_of_certificates(await asyncio.to_thread(server.config_in_force))
