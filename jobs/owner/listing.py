"""A single holder's LKC release, put in place and listed in the holder's privacy ledger, or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.data.sources import Source
from jobs.options import Noted, Options
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.release.folder import new_folder
from jobs.task import Task


def listed(
    task: Task, source: Source, out: Path, options: Options, release: Callable[[Path], tuple[bytes, Noted]]
) -> Noted:
    """Make a release in a new folder; return what its holder alone is told.

    release:  writes its files into a folder; returns its digest, and what the holder is told.
    """
    with _listing(task, source, options) as listing:
        with new_folder(out) as folder:
            digest, noted = release(folder)
            listing.reserve()
        listing.deliver(digest)
    return noted


def charged_job(task: Task) -> ChargedJob:
    """What the ledger notes of a job, which costs no ε."""
    return ChargedJob(task.model.name, task.job.name, task.digest)


class _Listing:
    """An LKC release in a single holder's privacy ledger, where one is named or stands beside the table.

    An LKC release begins no ledger: without DP releases the ledger would limit nothing.
    """

    def __init__(self, task: Task, ledger: PrivacyLedger, *, wanted: bool) -> None:
        self._job = charged_job(task)
        self._ledger = ledger
        self._wanted = wanted
        self._number: int | None = None

    def reserve(self) -> None:
        """The release is about to be put in place. Raises BudgetError if it cannot be listed: then there is none."""
        if self._wanted or self._ledger.exists:
            self._number = self._ledger.reserve(self._job, None)

    def deliver(self, release: bytes) -> None:
        """The release is in place; ``release``: its digest."""
        if self._number is not None:
            self._ledger.deliver(self._number, release)

    def settle(self) -> None:
        """What was reserved and never put in place is given back: nobody learned anything."""
        if self._number is not None:
            self._ledger.give_back(self._number)


@contextmanager
def _listing(task: Task, source: Source, options: Options) -> Iterator[_Listing]:
    """The listing of a run; settled when the block ends, however it does."""
    listing = _Listing(task, options.own_ledger(source), wanted=options.ledger is not None)
    try:
        yield listing
    finally:
        listing.settle()
