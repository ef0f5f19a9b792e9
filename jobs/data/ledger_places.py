"""Where the privacy ledger of a single holder is, who names no other place."""

from __future__ import annotations

import os
from pathlib import Path

_STATE = "XDG_STATE_HOME"
_LEDGER = "privacy.sqlite"


def of_the_user() -> Path:
    """In the state folder of the user: one file for all data sets, which it tells apart by their names."""
    state = os.environ.get(_STATE) or Path.home() / ".local" / "state"
    return Path(state) / "jointcut" / _LEDGER


def beside(table: Path) -> Path:
    """Beside a file or a folder; ``table``: behind all links."""
    return table.with_name(f"{table.name}.{_LEDGER}")
