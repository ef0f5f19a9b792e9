"""Common arguments of several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

DEFAULT_CONFIG = Path("party.yaml")


class _NamedPath(click.Path):
    """Path of a command line. An empty text is refused: a `"$UNSET"` is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty: name a file or folder", param, ctx)
        return super().convert(value, param, ctx)


PATH = _NamedPath(path_type=Path)

config_option = click.option(
    "--config",
    "-c",
    type=PATH,
    default=DEFAULT_CONFIG,
    show_default=True,
    help="Configuration file.",
)
