"""Starts `party` and `coordinator` so that nothing but what is installed is what runs.

Python looks for modules in the folders of PYTHONPATH, and often in the current folder, before those of an
installation: a `crypto.py` there would take the place of ours. So a program starts `isolated.py` in its place, under
-E (no PYTHON* variable counts) and -P (no folder is added to the path), and in UTF-8 whatever the locale. -I would do
the same, but would also hide what is installed for one user.

This file imports nothing of ours, and is itself found under a name that nobody else uses.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn

_PROGRAM = Path(__file__).resolve().with_name("isolated.py")
_ISOLATED = ("-E", "-P", "-X", "utf8")
_USAGE = 2
_WINDOWS = "error: usage: Jointcut runs on Linux and macOS; Windows is not supported yet"


def command(program: str) -> list[str]:
    """The command that starts `party`, `coordinator` or `reader` isolated, from where this file lies."""
    return [sys.executable, *_ISOLATED, str(_PROGRAM), program]


def party() -> NoReturn:
    """The console script `party`."""
    _start("party")


def coordinator() -> NoReturn:
    """The console script `coordinator`."""
    _start("coordinator")


def _start(program: str) -> NoReturn:
    if sys.platform == "win32":
        print(_WINDOWS, file=sys.stderr)
        sys.exit(_USAGE)
    os.execv(sys.executable, [*command(program), *sys.argv[1:]])  # noqa: S606  this interpreter, our file
