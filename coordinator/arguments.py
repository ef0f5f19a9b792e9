"""Common arguments of several commands of the coordinator."""

from __future__ import annotations

import re
from pathlib import Path

import click

from jobs.data.sources import Source, source_of_file
from jobs.errors import ConfigError
from jobs.file.fields import DELIMITER
from party.cli.arguments import PATH

DEFAULT_CONFIG = Path("coordinator.yaml")
config_option = click.option(
    "--config", "-c", type=PATH, default=DEFAULT_CONFIG, show_default=True, help="Configuration file."
)
ledger_option = click.option(
    "--ledger",
    type=PATH,
    help="Single holder: the privacy ledger; default beside the table. LKC: begun only if named.",
)
delimiter_option = click.option(
    "--delimiter", default=",", show_default=True, help="The separator of values in CSV tables."
)


def delimiter_of(text: str) -> str:
    """Return the character named by `--delimiter`. Raises ConfigError."""
    character = text.replace("\\t", "\t")
    if not re.fullmatch(DELIMITER, character):
        raise ConfigError("usage", f"--delimiter {text}: write one ASCII character, or \\t for a tab")
    return character


def source_of(path: Path, delimiter: str = ",") -> Source:
    """Return a table by file name: .parquet, or CSV."""
    if not path.is_file():
        raise ConfigError("file-missing", f"{path} is not a file")
    return source_of_file(path, delimiter)
