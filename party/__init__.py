"""The daemon each data holder runs: config, data, policy, sessions, transport."""

from importlib.metadata import version

__version__ = version("jointcut")
