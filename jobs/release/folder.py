"""Folder of a release: made whole or not at all, and never over an existing folder.

The maker works in a hidden folder beside the final place, with a file that the maker locks (``flock``). The lock
ends with the maker, for whatever reason: a hidden folder with an unlocked file belongs to nobody.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jobs.errors import ConfigError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder. The folder becomes ``path`` if the block succeeds, and vanishes otherwise.

    Until then nobody else can read the folder; afterwards the umask decides. Leftovers of killed makers beside
    ``path`` are removed first.

    Raises ConfigError if ``path`` exists: nothing is overwritten. An error of the operating system without a file
    name, such as a full disk, then names ``path``.
    """
    refuse_existing(path)
    sweep(path.parent, path.name)
    with _placed(path), _parents(path), _temporary(path) as folder:
        yield folder
        refuse_existing(path)
        make_durable(folder)
        with _synced(path.parent):
            _rename(folder, path)


def _rename(folder: Path, path: Path) -> None:
    """Rename a folder. Raises ConfigError if somebody else's ``path`` has appeared meanwhile."""
    try:
        os.rename(folder, path)
    except OSError:
        refuse_existing(path)
        raise


@contextmanager
def _synced(folder: Path) -> Iterator[None]:
    """Let the disk know what the block changes in a folder, as far as possible.

    The block stands, whatever the disk says: an error would undo what goes with it. A folder that only takes files is
    not opened.
    """
    opened = os.open(folder, os.O_RDONLY) if os.access(folder, os.R_OK) else None
    try:
        yield
        if opened is not None:
            with suppress(OSError):
                os.fsync(opened)
    finally:
        if opened is not None:
            os.close(opened)


def make_durable(folder: Path) -> None:
    """Return when all files of a folder are on disk."""
    for path in folder.iterdir():
        if path.is_dir():
            make_durable(path)
        else:
            _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system does not know the request
            raise
    finally:
        os.close(opened)


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Say where, if an error of the operating system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def sweep(folder: Path, name: str = "") -> int:
    """Remove hidden folders of killed makers in ``folder``; return the number of removed folders.

    name:  name of the folder in the making; any name if empty.

    A living process keeps its folder.
    """
    if not folder.is_dir() or not os.access(folder, os.R_OK):  # a folder may be writable but not listable
        return 0
    shape = re.compile(rf"\.{re.escape(name) or '.+'}-[a-z0-9_]{{8}}")  # a name made by `mkdtemp`
    left = [path for path in folder.iterdir() if shape.fullmatch(path.name) and path.is_dir()]
    return sum(_removed(path) for path in left)


def _removed(hidden: Path) -> bool:
    """Remove a hidden folder if no maker works inside; return True if removed."""
    try:
        lock = os.open(hidden / _LOCK, os.O_RDWR)
    except FileNotFoundError:  # the maker was about to lock the file, and a live maker begins anew
        with suppress(OSError):  # not empty: somebody else's folder, or the maker was faster
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
def _temporary(path: Path) -> Iterator[Path]:
    """Yield a folder with the permissions of the umask, inside a hidden folder of ours. Both vanish afterwards."""
    hidden, lock = _hidden(path)
    try:
        folder = hidden / path.name
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        os.close(lock)


def _hidden(path: Path) -> tuple[Path, int]:
    """Make a hidden folder beside ``path`` and lock the folder; retry if a sweep removed it before the lock."""
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


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above ``path``. If the block fails, the new folders are removed again."""
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # somebody else may use the folder by now
                parent.rmdir()
        raise


def refuse_existing(path: Path, what: str = "folder") -> None:
    """Raise ConfigError if anything is at ``path``, a dangling link included; what: the planned content."""
    if os.path.lexists(path):
        raise ConfigError(
            "output-exists", f"{path} exists", remedy=f"name a new {what}; nothing is overwritten"
        )


def write_own_account(folder: Path, fields: Mapping[str, Any]) -> Path:
    """Write the owner's private account of a run beside its release, if the release is here; return the file.

    Raises OSError.
    """
    folder.parent.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    return place_for_owner(folder / OWN_ACCOUNT, as_json(fields))


def as_json(fields: Mapping[str, Any]) -> str:
    """Return fields as JSON for people and programs."""
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def place_for_owner(path: Path, text: str) -> Path:
    """Put a file in place, whole or not at all, always readable by its owner only. Raises OSError."""
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")  # mode 0600
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def write_for_owner(path: Path, text: str) -> None:
    """Write a new file, readable by its owner only, and return when the file is on disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by name, into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


_LOCK = ".jointcut-lock"
OWN_ACCOUNT = "own-account.json"
"""File name at a party: its rows, reveals and costs, and everything private to the party."""
OWN_PAGE = "owner-report.html"
"""File name of the page from raw rows: beside a single holder's release, and beside a party's account."""
OWN = "own"
"""Folder name in a simulation: the accounts and pages of all parties. The user of a simulation owns all tables."""
