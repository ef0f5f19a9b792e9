"""Figures that only the owner may know of runs that came to a result: a file beside each release, for the
owner alone.

Nothing waits for it: it is written when the run is over, and shown by `party accounts`; on a terminal also at once.
Until it is finished the file says so. What it is made of is in the daemon's memory alone: a daemon that has ended
makes none any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.errors import json_object
from jobs.release.folder import OWN_ACCOUNT, write_own_account

UNFINISHED = "unfinished"
"""Key of an account that is not finished: why."""
BEING_MADE = "being made"
FAILED = "the account could not be made: see `party problems`; the next run of the job makes an account"
LOST = "never finished: the daemon ended too early; the next run of the job makes an account"
RELEASES = "releases"
"""In the state folder: what was delivered to us, a folder for each run."""


def accounts(state_dir: Path, last: int, *, lost: bool) -> list[tuple[Path, dict[str, Any]]]:
    """The last accounts, oldest first, with their files. Raises OSError.

    lost:  no daemon runs that could be making one.
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
    """Mark the accounts that daemons which have ended left unfinished; return how many. Raises OSError."""
    left = [
        (path, fields | {UNFINISHED: LOST})
        for path in (state_dir / RELEASES).glob(f"*/{OWN_ACCOUNT}")
        if (fields := json_object(path.read_bytes()) or {}).get(UNFINISHED) == BEING_MADE
    ]
    for path, fields in left:
        write_own_account(path.parent, fields)
    return len(left)


def words_of(account: Mapping[str, Any]) -> list[str]:
    """Say an account in sentences: of the rows, and of what became of the records."""
    if UNFINISHED in account:
        return [f"not finished: {account[UNFINISHED]}"]
    return [*account.get("in_words", ()), *account.get("records", {}).get("in_words", ())]
