"""Common arguments of several commands."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_CONFIG = Path("party.yaml")
PATH = click.Path(path_type=Path)

config_option = click.option(
    "--config",
    "-c",
    type=PATH,
    default=DEFAULT_CONFIG,
    show_default=True,
    help="Configuration file.",
)
