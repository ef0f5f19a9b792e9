"""`renew`, and warnings about certificates, the same on either command line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import click

from jobs.errors import PartyError
from party.cli.console import Option, format_option, note, say
from party.owner.config import NodeConfig, certificate_warnings, load_config
from party.owner.renewal import renew

log = logging.getLogger("party")

DAY_S = 24 * 3600.0


def renew_command(model: type[NodeConfig], config_option: Option) -> click.Command:
    """Return the command for a new identity, for a kind of configuration and the option with its file."""

    @click.command("renew")
    @config_option
    @format_option
    def command(config: Path) -> None:
        """Make a new key and certificate, and keep the old files aside.

        Every peer has to install the new certificate before the next job with us.
        """
        settings = load_config(model, config)
        made = renew(settings)
        add = f"peers add {settings.name} CERTIFICATE --replace --fingerprint {made.fingerprint}"
        say(
            f"{settings.name} has a new identity, valid until {made.until}\n"
            f"  certificate    {made.certificate}  (send the certificate to every peer)\n"
            f"  fingerprint    {made.fingerprint}  (tell the fingerprint to every peer over a separate channel)\n"
            f"  until then     no peer works with {settings.name}; each peer calls: {add}\n"
            + "\n".join(f"  kept           {path}" for path in made.kept),
            {
                "name": settings.name,
                "certificate": str(made.certificate),
                "fingerprint": made.fingerprint,
                "valid_until": made.until,
                "kept": [str(path) for path in made.kept],
            },
        )

    return command


async def warn_daily(config_in_force: Callable[[], NodeConfig]) -> None:
    """Warn of certificates every day, until the task is stopped. The start has warned already."""
    while True:
        await asyncio.sleep(DAY_S)
        try:
            warn_of_certificates(await asyncio.to_thread(config_in_force))
        except PartyError as error:
            log.error("%s", error.problem.text(to_owner=True))


def warn_of_certificates(config: NodeConfig) -> None:
    """Warn the owner, on standard error, of certificates that cannot be used or expire soon."""
    for name, text in certificate_warnings(config).items():
        note(
            f"warning: the certificate of {name} {text}",
            peer=name,
            message=f"the certificate of {name} {text}",
        )
