"""Launcher of `party` and `coordinator` with installed code only.

Python looks for modules in the folders of PYTHONPATH, and often in the current folder, before the folders of an
installation: a `crypto.py` there would replace ours. So the launcher replaces itself with `isolated.py`, under -E
(no PYTHON* variable counts) and -P (no folder is added to the path), and in UTF-8 under any locale. -I would do the
same, but would also hide packages installed for a single user.

This file imports nothing of ours, and has a unique name.
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
    """Return the command for starting a program isolated, from the file's folder.

    program: `party`, `coordinator`, `reader` or `daemons`.
    """
    return [sys.executable, *_ISOLATED, str(_PROGRAM), program]


def party() -> NoReturn:
    """Run the console script `party`."""
    _start("party")


def coordinator() -> NoReturn:
    """Run the console script `coordinator`."""
    _start("coordinator")


def _start(program: str) -> NoReturn:
    if sys.platform == "win32":
        print(_WINDOWS, file=sys.stderr)
        sys.exit(_USAGE)
    os.execv(sys.executable, [*command(program), *sys.argv[1:]])  # noqa: S606  our interpreter, our file
