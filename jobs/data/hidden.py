"""Hidden folders that belong to a living process: what a killed one left is told from what another is making.

Each holds a file that its maker keeps locked (``flock``) as long as it lives. Whatever ends the maker ends the lock:
a hidden folder whose file can be locked belongs to nobody.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".jointcut-lock"


def sweep(folder: Path, name: str = "") -> int:
    """Remove the hidden folders that killed makers left in ``folder``; return how many there were.

    name:  of the folder that was being made; of any if empty.

    What a living process is making stays.
    """
    if not folder.is_dir() or not os.access(
        folder, os.R_OK
    ):  # one may write to a folder that one cannot list
        return 0
    shape = re.compile(rf"\.{re.escape(name) or '.+'}-[a-z0-9_]{{8}}")  # what `mkdtemp` makes
    left = [path for path in folder.iterdir() if shape.fullmatch(path.name) and path.is_dir()]
    return sum(_removed(path) for path in left)


def _removed(hidden: Path) -> bool:
    """Remove a hidden folder if nobody makes anything in it; return whether that was so."""
    try:
        lock = os.open(hidden / _LOCK, os.O_RDWR)
    except FileNotFoundError:  # its maker was about to lock it, and begins anew if it lives
        with suppress(OSError):  # not empty: somebody else's, or its maker was faster
            hidden.rmdir()
        return not hidden.exists()
    except OSError:  # somebody else's
        return False
    try:
        if not _locked(lock):
            return False
        shutil.rmtree(hidden, ignore_errors=True)
    finally:
        os.close(lock)
    return not hidden.exists()


@contextmanager
def short_lived(name: str) -> Iterator[Path]:
    """A folder of ours alone among the temporary ones, until the block ends.

    Those of this name that killed processes left are removed first; a living one's stays.
    """
    place = Path(tempfile.gettempdir())
    sweep(place, name)
    hidden, lock = hidden_folder(place / name)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        os.close(lock)


def hidden_folder(path: Path) -> tuple[Path, int]:
    """Make a hidden folder beside ``path`` and lock it; between the two somebody may have swept it away."""
    while True:
        hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        with suppress(FileNotFoundError):
            lock = os.open(hidden / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if _locked(lock) and os.path.exists(hidden / _LOCK):
                return hidden, lock
            os.close(lock)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
