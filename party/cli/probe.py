"""`party probe`: ask the monitor of the daemon on this machine."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from pathlib import Path

import click

from jobs.errors import ConfigError, TransportError, printable
from jobs.file.fields import check_address
from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.owner.config import PartyConfig, load_config, on_this_machine

_PATIENCE_S = 5.0
_ASKED = {"livez": "alive", "readyz": "ready for a job"}
"""Questions, with the state of the daemon that each asks for."""


@click.command()
@click.argument("question", type=click.Choice([*_ASKED]))
@config_option
@click.option("--at", metavar="HOST:PORT", help="Address of the monitor; the configuration is not read.")
@format_option
def probe(question: str, config: Path, at: str | None) -> None:
    """Ask the monitor if the daemon is alive, or ready for a job.

    For probes of containers, which call no loopback address themselves. Exit code 0: yes; 3: no, or no answer. With
    --at a mistake in the configuration, which the running daemon has not taken over, makes no difference.
    """
    name, address = _monitor_of(config) if at is None else ("", _address(at))
    status, said = _answer(address, question)
    if status != 200:
        raise TransportError(
            "daemon-not-ready", f"the daemon is not {_ASKED[question]}: {said}", party=name or None
        )
    say(f"{name or address}: {said}", {"name": name or None, question: said})


def _monitor_of(config: Path) -> tuple[str, str]:
    """Return name and monitor of the daemon of a configuration. Raises ConfigError without a monitor."""
    settings = load_config(PartyConfig, config)
    if settings.monitor is None:
        raise ConfigError(
            "config-invalid", "the configuration has no `monitor`", remedy="write `monitor: 127.0.0.1:9464`"
        )
    return settings.name, settings.monitor


def _address(at: str) -> str:
    """Return an address on this machine. Raises ConfigError for any other text."""
    try:
        return on_this_machine(check_address(at))
    except ValueError as error:
        raise ConfigError("usage", f"--at {at}: {error}") from None


def _answer(address: str, question: str) -> tuple[int, str]:
    """Return the status of an answer and its lines as one. Raises TransportError without an answer."""
    host, port = address.rsplit(":", 1)
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=_PATIENCE_S)
    try:
        connection.request("GET", f"/{question}")
        answer = connection.getresponse()
        return answer.status, printable("; ".join(answer.read(4096).decode().splitlines()))
    except (OSError, HTTPException) as error:
        raise TransportError(
            "daemon-not-ready",
            f"the daemon does not answer at {address} (`monitor`)",
            remedy="start the daemon: party serve",
        ) from error
    finally:
        connection.close()
