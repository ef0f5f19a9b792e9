"""Commands that are imported when they are called: a command line that lists them, or runs one, loads no other."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import click


class Late(click.Command):
    """Stands for a command until it is called: its name and its summary."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        """``place``: `module:attribute`. ``summary``: how the command's own help begins."""
        super().__init__(name, help=summary)
        self._place = place

    @property
    def command(self) -> click.Command:
        """The command itself, imported now. What is imported stays: none of it is looked through for garbage."""
        module, _, attribute = self._place.partition(":")
        collects = gc.isenabled()
        gc.disable()
        try:
            found: click.Command = getattr(import_module(module), attribute)
        finally:
            if collects:
                gc.enable()
        return found

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        return self.command.make_context(info_name, args, parent, **extra)
