"""`party web`: a link with which its caller signs in to the owner's page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from crypto.rng import SystemRng
from jobs.errors import ConfigError
from party.cli.arguments import config_option
from party.cli.console import format_option, note, say
from party.owner.config import PartyConfig, load_config
from party.owner.deciding import user
from party.owner.identity import in_words
from party.owner.in_force import running
from party.web.tokens import LIVES_S, Tokens


@click.command()
@config_option
@format_option
def web(config: Path) -> None:
    """Print a link to the owner's page, good once and for ten minutes.

    Whoever opens it decides in your name: by the operating system's user who called this.
    """
    settings = load_config(PartyConfig, config)
    if settings.web is None:
        remedy = "add `web: {listen: 127.0.0.1:7480}`, then restart the daemon"
        raise ConfigError("usage", f"the configuration of {settings.name} has no `web`", remedy=remedy)
    if running(settings, config) is None:
        note("warning: no daemon runs on this `state_dir`", message="no daemon runs on this `state_dir`")
    who = user()
    token = Tokens(settings.state_dir).issue(who, SystemRng())
    link = f"http://{settings.web.listen}/sign-in?token={token}"
    until = in_words(datetime.now(UTC) + timedelta(seconds=LIVES_S))
    say(
        [f"{who} signs in here, once, until {until}:", f"  {link}"],
        {"name": settings.name, "link": link, "who": who, "until": until},
    )
