"""Voice of a run: the places for its progress, and for notes to the owner of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from coordinator.progress import Progress, progress_of
from party.cli.console import note


class Note(Protocol):
    """Function that takes a note for the owner: a text for people, fields for programs."""

    def __call__(self, text: str, **fields: object) -> None: ...


@dataclass(frozen=True)
class Voice:
    """Voice of a run.

    progress:  begins to show a job, by name and number of parties.
    note:      takes each note.
    """

    progress: Callable[[str, int], Progress]
    note: Note


CONSOLE = Voice(progress_of, note)
"""Voice of the commands: standard error."""
