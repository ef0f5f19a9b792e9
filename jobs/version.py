"""Version of the program, as reports and greetings state the version."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("jointcut")


PROTOCOLS = "c165a5e5"
"""Name of the protocols of joint runs, the same at all parties of a run: digest of transcripts in tests/vectors."""


def talks_with(other: str) -> bool:
    """Return True if a peer's version is understood: the first number is ours, the second at most one off."""
    try:
        (first, second), (ours, our_second) = _numbers(other), _numbers(__version__)
    except ValueError:
        return False
    return first == ours and abs(second - our_second) <= 1


def _numbers(version: str) -> tuple[int, int]:
    first, second, *_ = version.split(".")
    return int(first), int(second)
