"""Isolated part of `jointcut.launcher`, started by path."""

import ctypes
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Settings against early threads of libraries: a daemon forks its reader, and the reader forks."""

_PR_SET_DUMPABLE = 4  # prctl(2)

_ROOT = Path(__file__).resolve().parent.parent


def _main_of(program: str) -> Callable[[], None]:
    if program == "party":
        from party.cli.commands import main
    elif program == "reader":
        from party.decoding import serve as main
    elif program == "daemons":
        from party.cli.daemons import main
    else:
        from coordinator.cli import main
    return main


def guard(program: str) -> None:
    """Keep core dumps off the disk; give a party's files to the owner alone, under any umask.

    A core has keys and rows inside. On Linux a party's process is not dumpable either: no other process of its user
    reads its memory.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if program != "coordinator":
        os.umask(0o077)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def hold_streams() -> None:
    """Let each standard stream that was closed at the start (`>&-`) lead nowhere.

    Otherwise the next file or connection gets its number, and what a library prints goes there: into a ledger, or to
    a peer.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  for as long as the process lives


def run() -> None:
    """Run the program named by the first argument.

    The modules come from the folder with the package. An installation has the folder on the path; a checkout need
    not.
    """
    program = sys.argv[1]
    hold_streams()
    guard(program)
    if _ROOT not in [Path(folder).resolve() for folder in sys.path]:
        sys.path.insert(0, str(_ROOT))
    sys.argv = [program, *sys.argv[2:]]
    if program != "coordinator":
        os.environ.update(_NO_THREADS)
    _main_of(program)()


if __name__ == "__main__":
    run()
