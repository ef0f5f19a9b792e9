"""Listing of a single holder's LKC release: put in place and charged in the privacy ledger, or neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobs.data.sources import Source
from jobs.options import Noted, Options
from jobs.owner.ledger import ChargedJob
from jobs.release.folder import new_folder
from jobs.task import Task


def listed(
    task: Task, source: Source, out: Path, options: Options, release: Callable[[Path], tuple[bytes, Noted]]
) -> Noted:
    """Make a release in a new folder; return the notes for its holder alone.

    The ledger is the named ledger, or the ledger beside the table. An LKC release starts no ledger: without DP
    releases the ledger would limit nothing. A release that is not put in place gives its reservation back, since
    nobody learned anything.

    release:  writes its files into a folder; returns its digest, and the notes for the holder.
    """
    ledger, number = options.own_ledger(source), None
    try:
        with new_folder(out) as folder:
            digest, noted = release(folder)
            if options.ledger is not None or ledger.exists:
                number = ledger.reserve(charged_job(task), None)
    except BaseException:
        if number is not None:
            ledger.give_back(number)
        raise
    if number is not None:
        ledger.deliver(number, digest)
    return noted


def charged_job(task: Task) -> ChargedJob:
    """Return the job for the ledger, at no ε."""
    return ChargedJob(task.model.name, task.job.name, task.digest)
