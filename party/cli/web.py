"""`party web`: a link that signs the owner in to the page of the daemon."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from crypto.rng import SystemRng
from jobs.errors import ConfigError, TransportError
from party.cli.arguments import config_option
from party.cli.console import format_option, say
from party.owner.config import PartyConfig, load_config
from party.owner.in_force import running
from party.web.signing_in import TOKEN_LASTS, SignIns


@click.command(name="web")
@config_option
@format_option
def web_command(config: Path) -> None:
    """Print a link to the owner's page, for one sign-in.

    The link is valid for five minutes. Whoever has the link can approve jobs: pass the link to nobody.
    """
    settings = load_config(PartyConfig, config)
    if settings.web is None:
        raise ConfigError(
            "usage",
            f"{config} configures no page",
            remedy="write `web: {listen: 127.0.0.1:7480}` into the file, and restart the daemon",
        )
    daemon = running(settings, config)
    if daemon is None or "web" in daemon.restart_for:
        verb = "start" if daemon is None else "restart"
        raise TransportError(
            "daemon-not-ready",
            f"no daemon shows a page at {settings.web.listen} (`web.listen`)",
            remedy=f"{verb} the daemon: party serve",
        )
    now = datetime.now(UTC)
    token = SignIns(settings.state_dir, SystemRng()).token(now)
    url = f"http://{settings.web.listen}/sign-in?token={token}"
    minutes = int(TOKEN_LASTS.total_seconds()) // 60
    say(f"{url}\n  works once, within {minutes} minutes", {"url": url})
