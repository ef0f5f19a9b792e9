"""The version of this program, as reports and greetings state it."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("jointcut")
