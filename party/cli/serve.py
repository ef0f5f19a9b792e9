"""`party serve`: the daemon as a process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

import click

from jobs.data.hidden import sweep
from jobs.errors import ConfigError, PartyError
from jobs.version import __version__
from party.cli.arguments import config_option
from party.cli.certificates import warn_of_certificates
from party.cli.console import format_option, json_unless_watched, note, say, set_up_logs
from party.compiling import compile_where_it_pays
from party.daemon import Daemon
from party.decoding import READER
from party.net.refusing import WINDOW_S
from party.net.server import PartyServer
from party.net.streams import raise_file_limit
from party.net.waiting import stopped
from party.operations.levels import less, more
from party.operations.tally import Tally
from party.operations.watched import Watched, watched
from party.owner.accounts import RELEASES, give_up
from party.owner.config import PartyConfig, certificate_warnings, load_config
from party.queue import Place

log = logging.getLogger("party")

_DAY_S = 24 * 3600.0


@click.command()
@config_option
@click.option(
    "--until-input-ends",
    is_flag=True,
    help="Stop when standard input, a pipe, ends: whoever started us and holds its other end is gone.",
)
@format_option
def serve(config: Path, until_input_ends: bool) -> None:
    """Run the daemon until it is told to stop.

    Without a terminal on standard error, everything it says is JSON lines.
    """
    if until_input_ends:
        _require_pipe()
    READER.start()  # before there are keys in memory, and gRPC with its threads
    json_unless_watched()
    set_up_logs()
    compile_where_it_pays()
    asyncio.run(_serve(load_config(PartyConfig, config), config, until_input_ends))


def _require_pipe() -> None:
    """Raises ConfigError if standard input is nothing that ends with the process at its other end."""
    mode = os.fstat(sys.stdin.fileno()).st_mode if sys.stdin is not None else 0
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise ConfigError(
            "usage",
            "--until-input-ends is for a standard input that is a pipe",
            remedy="leave it out, or start us from a program that keeps the other end of a pipe open",
        )


async def _serve(config: PartyConfig, path: Path, until_input_ends: bool) -> None:
    stop, reread = stop_signals(), reread_signals()
    if until_input_ends:
        stop_when_input_ends(stop)
    level_signals()
    warn_of_certificates(config)
    raise_file_limit()
    tally, place = Tally(), Place(config.name)
    page = owners_page(config)
    server = PartyServer(config, partial(Daemon, tally=tally, place=place), path)
    address = await server.start()  # from here on no other daemon has this state folder
    if n_left := sweep(config.state_dir / RELEASES):
        log.warning("removed %d releases that runs killed earlier left unfinished", n_left)
    if n_left := give_up(config.state_dir):
        log.warning("accounts that an earlier daemon did not finish: %d; shown by `party accounts`", n_left)
    daemon = Watched(server.in_force, server.readiness, tally, server.handshakes)
    try:
        async with watched(config.operations, daemon) as operations, page(server, place) as web:
            beside = {
                key: where for key, where in (("operations", operations), ("web", web)) if where is not None
            }
            say(
                f"{config.name} listens on {address} (Jointcut {__version__})"
                + "".join(f"; {key} on {where}" for key, where in beside.items()),
                {"event": "listening", "name": config.name, "address": address} | beside,
            )
            upkeep = [reread_when_told(server, reread), warn_daily(server), note_strangers(server)]
            tasks = [asyncio.create_task(each) for each in upkeep]
            await stop.wait()
            await stopped(*tasks)
            await server.drained()  # while probes hear that we are leaving
            await server.stop()
    except PartyError:
        await server.stop()
        raise


OwnersPage = Callable[[PartyServer, Place], AbstractAsyncContextManager[str | None]]


def owners_page(config: PartyConfig) -> OwnersPage:
    """What serves the owner's page beside a server, and gives its address; nothing and None where none is configured.

    Raises ConfigError if what it needs is not installed.
    """
    configured = config.web
    if configured is None:
        return lambda _server, _place: nullcontext()
    try:
        from party.web.app import application
        from party.web.house import House
        from party.web.server import serving
    except ImportError as error:
        message = f"the owner's page needs {error.name}, which is not installed"
        remedy = "pip install 'jointcut[web]', or leave `web` out of the configuration"
        raise ConfigError("extra-missing", message, remedy=remedy) from error

    def page(server: PartyServer, place: Place) -> AbstractAsyncContextManager[str | None]:
        house = House(lambda: server.in_force.latest().config, server.readiness.why_not, place)
        return serving(configured, partial(application, house))

    return page


def stop_signals() -> asyncio.Event:
    """Set by the first signal that asks us to stop; the second ends the process at once."""
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


def reread_signals() -> asyncio.Event:
    """Set by SIGHUP; on a terminal, which sends it when it is closed, it ends us as it ends any program."""
    told = asyncio.Event()
    if not sys.stderr.isatty():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, told.set)
    return told


async def reread_when_told(server: PartyServer, told: asyncio.Event) -> None:
    """Whenever it is told, compare the files with what is in force, and say what changed or what is wrong."""
    while True:
        await told.wait()
        told.clear()
        try:
            if not await server.reread():
                log.info("nothing changed in the configuration, and what it names")
            log_of_certificates(server.config)
        except PartyError as error:
            problem = error.problem
            log.error("%s: %s [%s]", problem.error_id, problem.message, problem.private or problem.cause)


async def warn_daily(server: PartyServer, every_s: float = _DAY_S) -> None:
    """Warn of certificates again and again: who serves for years reads no warning of the start."""
    while True:
        await asyncio.sleep(every_s)
        with suppress(PartyError):  # our own cannot be read: every job says so
            log_of_certificates(server.config)


async def note_strangers(server: PartyServer, every_s: float = WINDOW_S) -> None:
    """Note again and again how many connections came over which no peer spoke."""
    while True:
        await asyncio.sleep(max(every_s, server.config.timeouts.hello_s))
        await server.note_strangers()


def log_of_certificates(config: PartyConfig) -> None:
    """Log which certificates cannot be used, or expire soon."""
    for name, text in certificate_warnings(config).items():
        log.warning("the certificate of %s %s", name, text)


def stop_when_input_ends(stop: asyncio.Event) -> None:
    """Set ``stop`` when nobody holds the other end of standard input any more, however that process ended.

    What comes over it is thrown away.
    """
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(number, 4096):
            loop.remove_reader(number)
            stop.set()

    loop.add_reader(number, read)


def level_signals() -> None:
    """SIGUSR1 makes us log more, SIGUSR2 less."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, _change_level, more)
    loop.add_signal_handler(signal.SIGUSR2, _change_level, less)


def _change_level(change: Callable[[], str]) -> None:
    level = change()
    note(f"from here on the log has the level {level}", log_level=level)
