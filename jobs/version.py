"""Version of the program, as reports and greetings state the version."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("jointcut")
