"""Runs what `jointcut.launcher` starts, in the process that it has isolated; it is started by its path."""

import ctypes
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""A daemon forks its reader, and the reader forks: libraries must not have started threads by then."""

_PR_SET_DUMPABLE = 4  # prctl(2)

_ROOT = Path(__file__).resolve().parent.parent


def _main_of(program: str) -> Callable[[], None]:
    if program == "party":
        from party.cli.commands import main
    elif program == "reader":
        from party.decoding import serve as main
    else:
        from coordinator.cli import main
    return main


def guard(program: str) -> None:
    """Let no core of this process reach a disk; give what a party writes to its owner alone, whatever the umask is.

    A core has keys and rows in it. On Linux a party's process is not dumpable, either: no other process of its user
    reads its memory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if program != "coordinator":
        os.umask(0o077)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def run() -> None:
    """Run the program that the first argument names.

    Its modules come from the folder in which this package lies: of an installation that folder is on the path, of a
    checkout it need not be.
    """
    program = sys.argv[1]
    guard(program)
    if _ROOT not in [Path(folder).resolve() for folder in sys.path]:
        sys.path.insert(0, str(_ROOT))
    sys.argv = [program, *sys.argv[2:]]
    if program != "coordinator":
        os.environ.update(_NO_THREADS)
    _main_of(program)()


if __name__ == "__main__":
    run()
