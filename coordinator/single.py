"""Job of a single holder: no party, no network."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from coordinator.owner_figures import tell_charged, tell_refused, tell_rows
from coordinator.progress import CONSOLE, RowsShown, Turns, Voice
from jobs.data.sources import Source
from jobs.options import NO_OPTIONS, UNLIMITED, Noted, Options
from jobs.stopwatch import Stopwatch
from jobs.task import Task

AGAIN = (
    "the release of an earlier run, again: nothing was charged, and later changes of tables are left out. A new "
    "release needs a new name"
)
"""Note on a release that the ledger keeps."""


def run_single(
    task: Task, source: Source, out: Path, options: Options = NO_OPTIONS, voice: Voice = CONSOLE
) -> Noted:
    """Anonymize a single holder's table into a new folder. Return the notes for the owner of the table."""
    job = task.job
    with voice.progress(job.name, 1) as progress:
        shown, source = Turns(progress, job.generalized), source.metered(RowsShown(progress))
        noted = task.model.run_single(task, source, out, options, Stopwatch(progress.phase), shown)
    tell_noted(noted, options.budget, voice)
    return noted


def tell_noted(noted: Noted, budget: Fraction = UNLIMITED, voice: Voice = CONSOLE) -> None:
    """Tell the owner of the table the facts outside the release."""
    if noted.again:
        voice.note(
            AGAIN,
            again=True,
        )
    if noted.rows is not None:
        tell_rows(noted.rows, noted.strays, voice.note)
    if noted.refused_for_sensitive is not None:
        tell_refused(noted.refused_for_sensitive, voice.note)
    for words in noted.of_table:
        voice.note(words)
    tell_charged(noted.charged, budget, voice.note)
