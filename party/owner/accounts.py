"""Owner's private figures of completed runs: a file beside each release.

Nothing waits for an account. An account is written after the run, and shown by `party accounts`; on a terminal also
at once. The file of an unfinished account says so. The inputs are in the daemon's memory alone, so a stopped daemon
finishes no account.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.errors import json_object
from jobs.release.folder import OWN_ACCOUNT, write_own_account

UNFINISHED = "unfinished"
"""Key of an unfinished account, for the reason."""
BEING_MADE = "being made"
FAILED = "the account could not be made: see `party problems`; the next run of the job makes an account"
LOST = "never finished: the daemon ended too early; the next run of the job makes an account"
RELEASES = "releases"
"""Folder of deliveries in the state folder, with a subfolder for each run."""


def release_folders(state_dir: Path) -> list[Path]:
    """Return the folders of releases that were delivered to us. Hidden folders are half-written. Raises OSError."""
    place = state_dir / RELEASES
    if not place.is_dir():
        return []
    return [
        each
        for each in place.iterdir()
        if each.is_dir() and not each.is_symlink() and not each.name.startswith(".")
    ]


def accounts(state_dir: Path, last: int, *, lost: bool) -> list[tuple[Path, dict[str, Any]]]:
    """Return the last accounts, oldest first, with their files. Raises OSError.

    lost:  True if no daemon runs that could be making an account.
    """
    files = (state_dir / RELEASES).glob(f"*/{OWN_ACCOUNT}")
    newest = sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))[-last:]
    found = [(path, json_object(path.read_bytes())) for path in newest]
    given_up = {UNFINISHED: LOST} if lost else {}
    return [
        (path, fields | given_up if fields.get(UNFINISHED) == BEING_MADE else fields)
        for path, fields in found
        if fields is not None
    ]


def give_up(state_dir: Path) -> int:
    """Mark unfinished accounts of stopped daemons; return their number. Raises OSError."""
    left = [
        (path, fields | {UNFINISHED: LOST})
        for path in (state_dir / RELEASES).glob(f"*/{OWN_ACCOUNT}")
        if (fields := json_object(path.read_bytes()) or {}).get(UNFINISHED) == BEING_MADE
    ]
    for path, fields in left:
        write_own_account(path.parent, fields)
    return len(left)


def words_of(account: Mapping[str, Any]) -> list[str]:
    """Return an account in sentences: the rows, and the fate of the records."""
    if UNFINISHED in account:
        return [f"not finished: {account[UNFINISHED]}"]
    return [*account.get("in_words", ()), *account.get("records", {}).get("in_words", ())]
