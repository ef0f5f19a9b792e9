"""Which files a pattern means. What cannot be looked into is an error, never left out: its rows would be missing.

Hidden names (`.part-0.parquet`, `_temporary/`) are what programs leave beside their tables, and match nothing. Links
to files are followed. Links to folders are refused, as engines differ in whether they follow them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from anonymize.errors import DataError
from jobs.data.errors import unreadable

WILD = frozenset("*?[")


def matching(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """The files in ``folder`` that a pattern means, some of them more than once.

    parts:  of the pattern: names, with `*`, `?` and `[...]`, or `**` for any number of folders.

    Raises DataError for a folder that cannot be listed, a link to a folder, and a link to nothing.
    """
    first, rest = parts[0], parts[1:]
    if first == "**":
        yield from matching(folder, rest or ("*",))
        for inside in filter(_is_folder, _entries(folder)):
            yield from matching(inside, parts)
        return
    for entry in _entries(folder):
        if not fnmatchcase(entry.name, first):
            continue
        is_folder = _is_folder(entry)
        if rest and is_folder:
            yield from matching(entry, rest)
        elif not rest and not is_folder:
            yield entry


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if not entry.name.startswith((".", "_"))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _refused(folder, os.strerror(error.errno or errno.EIO)) from error


def _is_folder(path: Path) -> bool:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise _refused(path, os.strerror(error.errno or errno.EIO)) from error
    if is_folder and path.is_symlink():
        raise _refused(path, "a link to a folder, which is not followed; put the folder itself there")
    return is_folder


def _refused(path: Path, why: str) -> DataError:
    return unreadable(cause=f"{path}: {why}")
