"""The environment of a machine that is not ours: no test passes because of what this one happens to set."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

BARE = ("PATH", "HOME", "LANG", "TMPDIR")
"""Variables that a program of ours finds in its environment."""

_PYTEST = ("PYTEST_", "HYPOTHESIS_", "CI", "COLUMNS", "LINES", "TERM")
"""Prefixes of the variables that the test runner and its own children find besides."""


def bare(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment that our programs are given."""
    return {name: environ[name] for name in BARE if name in environ}


def strip(environ: MutableMapping[str, str]) -> None:
    """Take from the test process what its children are not to inherit."""
    for name in list(environ):
        if name not in BARE and not name.startswith(_PYTEST):
            del environ[name]
