"""What only the owner may know of runs that came to a result: a file beside each release, for the owner alone.

Nothing waits for it: it is written when the run is over, and shown by `party accounts`; on a terminal also at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.errors import json_object
from jobs.folder import OWN_ACCOUNT

RELEASES = "releases"
"""In the state folder: what was delivered to us, a folder for each run."""


def accounts(state_dir: Path, last: int) -> list[tuple[Path, dict[str, Any]]]:
    """The last accounts, oldest first, with their files. Raises OSError."""
    files = (state_dir / RELEASES).glob(f"*/{OWN_ACCOUNT}")
    newest = sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))[-last:]
    found = [(path, json_object(path.read_bytes())) for path in newest]
    return [(path, fields) for path, fields in found if fields is not None]


def words_of(account: Mapping[str, Any]) -> list[str]:
    """What an account says in sentences: of the rows, and of what became of the records."""
    return [*account.get("in_words", ()), *account.get("records", {}).get("in_words", ())]
