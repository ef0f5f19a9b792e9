"""The folder of a release: made whole or not at all, and never over another one."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jobs.errors import ConfigError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``path`` when the block succeeds, and vanishes when it does not.

    Until then nobody else can read it; afterwards who the umask allows.

    Raises ConfigError if ``path`` exists: nothing is overwritten. An error of the operating system that names no
    file, such as that of a full disk, names ``path`` then.
    """
    refuse_existing(path)
    with _placed(path), _parents(path), _temporary(path) as folder:
        yield folder
        refuse_existing(path)
        os.rename(folder, path)


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """Say where, if an error of the operating system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def sweep(folder: Path) -> int:
    """Remove the hidden folders that killed runs left half-written in ``folder``; return how many there were.

    Nobody else may be writing there.
    """
    left = [path for path in folder.glob(".*") if path.is_dir()]
    for path in left:
        shutil.rmtree(path)
    return len(left)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A folder with the permissions that the umask gives, in a hidden one of ours alone that vanishes afterwards."""
    hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        folder = hidden / path.name
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above ``path``; those that were not there go again if the block fails."""
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # somebody else may use it by now
                parent.rmdir()
        raise


def refuse_existing(path: Path) -> None:
    """Raise ConfigError if anything is at ``path``, a dangling link included."""
    if os.path.lexists(path):
        raise ConfigError(
            "output-exists", f"{path} exists", remedy="name a new folder; nothing is overwritten"
        )


def write_own_account(folder: Path, fields: Mapping[str, Any]) -> None:
    """Write what only the owner may read, as a file that only the owner can read."""
    text = json.dumps(fields, indent=1, ensure_ascii=False) + "\n"
    file = os.open(folder / OWN_ACCOUNT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by name, into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


OWN_ACCOUNT = "own-account.json"
"""At a party: its rows, reveals and costs, with what concerns this party alone."""
