"""Commands imported on call. A command line that lists or runs a command imports no other command."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import click


class Late(click.Command):
    """Stand-in for a command until the call: name and summary."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        """``place``: `module:attribute`. ``summary``: how the command's own help begins."""
        super().__init__(name, help=summary)
        self._place = place

    @property
    def command(self) -> click.Command:
        """Import and return the command. Imported modules stay, so the garbage collector skips them."""
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
