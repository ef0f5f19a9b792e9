"""Single holder's release of sequences, from the table to the folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from anonymize.errors import PrivacyError
from anonymize.table import Ints
from anonymize.tds import Observer
from anonymize.trajectory.everywhere import suppress_everywhere
from anonymize.trajectory.exclusion import Exclusion, Untested, exclusion, exclusion_or_untested
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.metrics import FrequentLoss, frequent_loss, loss_of
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.repair import repaired
from anonymize.trajectory.requirement import Bounds, bounds_of
from anonymize.trajectory.sweep import Suppressed, local_alone
from jobs.data.counted import counted
from jobs.data.sources import Source
from jobs.options import Noted, Options
from jobs.owner.listing import listed
from jobs.page.own import own_page, place_own_page
from jobs.release.csv import TABLE
from jobs.release.making import write_report
from jobs.release.sums import fields_of_file
from jobs.sequences.files import write_table
from jobs.sequences.own_page import own_sections
from jobs.sequences.page import sections
from jobs.sequences.reading import Tracks, load_tracks, settings
from jobs.sequences.release import release_of_paths
from jobs.sequences.report import (
    exclusion_fields,
    loss_fields,
    n_maximal_frequent,
    suppressed_fields,
    told_by_table,
)
from jobs.sequences.requirement import least_frequent, requirement
from jobs.sequences.sentences import promises_of
from jobs.sequences.settings import FREQUENT, GLOBAL, REFUSE, REPAIR, SequencesModel
from jobs.stopwatch import Stopwatch
from jobs.task import Task


def release_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Anonymize a single holder's table into a new folder; list the release in the holder's privacy ledger."""
    return listed(task, source, out, options, partial(_release, task, source, watch, shown))


def _release(
    task: Task, source: Source, watch: Stopwatch, shown: Observer, folder: Path
) -> tuple[bytes, Noted]:
    """Make, verify and write table, report and digests; return the digest, and the notes for the holder alone."""
    with watch.phase("read"):
        tracks = load_tracks(source, task)
    with watch.phase("anonymize"):
        made = anonymized(task, tracks, shown)
    with watch.phase("release"):
        release = release_of_paths(
            task.job,
            made.left,
            made.number,
            tracks.schema,
            tracks.vocabulary,
            tracks.places,
            tracks.times,
            tracks.plain,
        )
    seen, verified = write_table(task, folder, release, watch)
    with watch.phase("report"):
        frequent = _frequent(task, made)
        n_maximal = n_maximal_frequent(task, made.left) if frequent is None else frequent.after
        told = told_by_table(task, seen.paths, release.n_rows, verified, n_maximal)
        report = {**told, "reveals": [], **_worth(tracks, made, frequent), "data": tracks.rows.fields()}
    noted = Noted(of_table=tuple(tracks.rows.mark_words()))
    page = partial(sections, task, sentences=promises_of(task), seen=seen)
    place_own_page(own_page(task, own_sections(task, tracks, made.raw, made.left)), folder)
    tables = {TABLE: fields_of_file(folder / TABLE)}
    return write_report(task, folder, tables, report, watch.seconds, page), noted


@dataclass(frozen=True)
class Anonymized:
    """Holder's records after the run.

    raw, left:   their paths before and after the run, path by path.
    number:      the path of every record.
    suppressed:  the last time that sequences were suppressed.
    turns, emptied: the cost of `exclusion: repair`.
    exclusion:   disclosures by exclusion; None if nobody can be excluded, Untested if the test is too
                large.
    """

    raw: Paths = field(repr=False)
    left: Paths = field(repr=False)
    number: Ints = field(repr=False)
    suppressed: Suppressed = field(repr=False)
    exclusion: Exclusion | Untested | None = field(repr=False)
    turns: int = field(default=0, repr=False)
    emptied: int = field(default=0, repr=False)


def anonymized(task: Task, tracks: Tracks, shown: Observer | None = None) -> Anonymized:
    """Suppress the sequences requested by the job. Raises PrivacyError."""
    asked, paths = settings(task.job), tracks.paths
    bounds = bounds_of(requirement(task.job), tracks.schema)
    if asked.exclusion == REPAIR:
        last: list[Suppressed] = []

        def suppress(now: Paths) -> Paths:
            last[:] = [_suppressed(asked, now, bounds, shown)]
            return last[0].paths

        found = repaired(paths, tracks.path_of, suppress, tracks.vocabulary, bounds)
        _require_tested(found.exclusion, tracks.vocabulary)
        return Anonymized(
            found.raw, found.left, found.number, last[0], found.exclusion, found.turns, found.emptied
        )
    suppressed = _suppressed(asked, paths, bounds, shown)
    left = suppressed.paths
    find = exclusion if asked.exclusion == REFUSE else exclusion_or_untested
    out = find(paths, left, left, tracks.vocabulary, bounds)
    if asked.exclusion == REFUSE:
        _require_tested(out, tracks.vocabulary)
        _require_unexposed(out)
    return Anonymized(paths, left, tracks.path_of, suppressed, out)


def _require_tested(found: Exclusion | Untested | None, vocabulary: Vocabulary) -> None:
    """Refuse a table with more to test than possible. Raises PrivacyError."""
    if found is None and vocabulary.timed:
        raise PrivacyError(
            "exclusion-unmet",
            "exclusion cannot be tested: some records are at two places at the same time",
            remedy="say `places: first`, or `exclusion: report`",
        )


def _require_unexposed(out: Exclusion | Untested | None) -> None:
    """Refuse a table with disclosures by exclusion. Raises PrivacyError."""
    if isinstance(out, Exclusion) and out.n_exposed:
        raise PrivacyError(
            "exclusion-unmet",
            "a reader who knows readings of a person, and that nobody is at two places at once, is left with too "
            "few records",
            private=f"{counted(out.records, 'record is', 'records are')} exposed, by "
            f"{counted(out.n_exposed, 'set', 'sets')} of readings; for some set only "
            f"{counted(out.least or 0, 'record is', 'records are')} left",
            remedy="say `exclusion: repair` or `report`, take coarser times, a smaller L or a smaller K",
        )


def _suppressed(asked: SequencesModel, paths: Paths, bounds: Bounds, shown: Observer | None) -> Suppressed:
    """Return the rest of each path. Raises PrivacyError."""
    if asked.suppress == GLOBAL:
        frequent = least_frequent(asked, paths.n_records) if asked.cost == FREQUENT else None
        return suppress_everywhere(paths, bounds, asked.max_candidates, frequent)
    return local_alone(paths, bounds, asked.max_candidates, shown)


def _frequent(task: Task, made: Anonymized) -> FrequentLoss | None:
    """Measure the loss of maximal frequent sequences."""
    asked = settings(task.job)
    return frequent_loss(made.raw, made.left, least_frequent(asked, made.raw.n_records), asked.max_candidates)


def _worth(tracks: Tracks, made: Anonymized, frequent: FrequentLoss | None) -> dict[str, Any]:
    """Return the report's fields of the raw records, and of the losses up to the published records."""
    raw, left = made.raw, made.left
    loss = loss_of(raw, left)
    return {
        **suppressed_fields(made.suppressed),
        "lost": loss_fields(loss),
        "frequent": None if frequent is None else asdict(frequent),
        "exclusion": exclusion_fields(made.exclusion, tracks.vocabulary.timed, made.turns, made.emptied),
    }
