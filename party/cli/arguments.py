"""What several commands of a party take."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_CONFIG = Path("party.yaml")

config_option = click.option(
    "--config",
    "-c",
    type=click.Path(path_type=Path),
    default=DEFAULT_CONFIG,
    show_default=True,
    help="Configuration file.",
)
