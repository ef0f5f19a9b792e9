"""Released table of sequences read back: its records as anybody can see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymize.errors import DataError
from anonymize.release import LabelledColumn, Release, only_found
from anonymize.table import Codes, Ints, Schema, coded_table
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Items, Paths, collapsed
from jobs.errors import PartyError
from jobs.file.values import values_of
from jobs.sequences.domains import is_wide, place_column, places_of, time_column, times_of, vocabulary_of
from jobs.sequences.release import RECORD, published, release_of_paths
from jobs.task import Task


@dataclass(frozen=True)
class Reread:
    """Records of a release, like a holder's in :class:`jobs.sequences.reading.Tracks`."""

    paths: Paths = field(repr=False)
    path_of: Ints = field(repr=False)
    schema: Schema = field(repr=False)
    vocabulary: Vocabulary
    places: tuple[str, ...] = field(repr=False)
    times: tuple[str, ...] = field(repr=False)


def reread(release: Release, task: Task) -> Reread:
    """Read a table with the published columns. Raises PartyError unless written in the form of our releases."""
    if release.n_rows == 0:
        raise PartyError("verification-failed", "the table has no rows")
    job = task.job
    release = replace(release, columns={name: only_found(c) for name, c in release.columns.items()})
    times = times_of(task)
    places, items, starts, first = _records(release, task)
    vocabulary = vocabulary_of(max(len(places), 1), times)
    domains = {name: _domain(release, task, name) for name in job.names("sensitive")}
    sensitive: list[Codes] = [
        _places_in(release.columns[name], domain, name)[first] for name, domain in domains.items()
    ]
    table = coded_table(
        _schema(task, domains),
        [],
        np.zeros(len(first), dtype=np.int64),
        sensitive,
        occurring=bool(sensitive) and not job.roster,
    )
    paths, path_of = collapsed(items, starts, table.cells, vocabulary.n_items)
    labels = () if times is None else times.labels
    seen = Reread(paths, path_of, table.schema, vocabulary, places, labels)
    _require_as_written(release, task, seen, first)
    return seen


def _records(release: Release, task: Task) -> tuple[tuple[str, ...], Items, Ints, Ints]:
    """Return the possible places or values, the items of every record, their starts, and each record's first line."""
    job, listed, times = task.job, places_of(task), times_of(task)
    column = release.columns[place_column(job)]
    if not is_wide(job):
        places = listed or tuple(sorted(set(column.labels) - {""}))
        return places, *_lines(release, task, places, () if times is None else times.labels)
    separator = job.columns[place_column(job)].separator or ";"
    found = [tuple(label.split(separator)) if label else () for label in column.labels]
    places = listed or tuple(sorted({value for each in found for value in each}))
    items, starts = _sets(found, column.codes, places, place_column(job))
    return places, items, starts, np.arange(release.n_rows)


def _require_as_written(release: Release, task: Task, seen: Reread, first: Ints) -> None:
    """Raise PartyError unless a table is exactly its records as written. first: each record's first line."""
    columns = release.columns
    plain = {
        name: LabelledColumn(columns[name].labels, columns[name].codes[first])
        for name in task.job.names("plain")
    }
    again = release_of_paths(
        task.job, seen.paths, seen.path_of, seen.schema, seen.vocabulary, seen.places, seen.times, plain
    )
    for name in published(task.job):
        if not _same(again.columns[name], columns[name]):
            raise PartyError(
                "verification-failed",
                f"column {name}: the table does not have the form of a release: records in order, with the same "
                "value in all lines of a record",
            )


def _schema(task: Task, domains: Mapping[str, tuple[str, ...]]) -> Schema:
    try:
        return task.schema_with(domains)
    except DataError as error:
        raise PartyError("verification-failed", str(error)) from error


def _domain(release: Release, task: Task, name: str) -> tuple[str, ...]:
    """Return the schema's values of a sensitive column. Rows with a protected value may have been left out."""
    if task.job.columns[name].is_listed:
        return values_of(task, name).published
    return tuple(sorted({*release.columns[name].labels, *task.job.columns[name].protected}))


def _places_in(column: LabelledColumn, domain: Sequence[str], name: str) -> Ints:
    """Return the place of each row's value in a domain: int64, shape (n_rows,)."""
    place = {value: i for i, value in enumerate(domain)}
    unknown = [label for label in column.labels if label not in place]
    if unknown:
        raise PartyError(
            "verification-failed",
            f"column {name} has a value outside the column's domain",
            private=unknown[0],
        )
    found: Ints = np.array([place[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]
    return found


def _sets(
    found: Sequence[tuple[str, ...]], codes: Codes, places: Sequence[str], name: str
) -> tuple[Items, Ints]:
    """Return the items of every row, and their starts."""
    number = {value: i for i, value in enumerate(places)}
    for each in found:
        for value in each:
            if value not in number:
                raise PartyError(
                    "verification-failed",
                    f"column {name} has a value outside the column's domain",
                    private=value,
                )
    sets = [np.array(sorted({number[value] for value in each}), dtype=np.int32) for each in found]
    lengths = np.array([len(each) for each in sets] or [0], dtype=np.int64)[codes]
    items = [sets[code] for code in codes.tolist()]
    return np.concatenate([np.zeros(0, dtype=np.int32), *items]), np.concatenate([[0], np.cumsum(lengths)])


def _lines(
    release: Release, task: Task, places: Sequence[str], times: Sequence[str]
) -> tuple[Items, Ints, Ints]:
    """Return the items of every record, their starts, and the first line of each."""
    column = release.columns[RECORD]
    if any(not label.isascii() or not label.isdigit() or label.startswith("0") for label in column.labels):
        raise PartyError("verification-failed", f"column {RECORD} has a value other than a record's number")
    if any(len(label) > 10 for label in column.labels):
        raise PartyError("verification-failed", f"column {RECORD} does not count from 1")
    record = np.array([int(label) for label in column.labels], dtype=np.int64)[column.codes] - 1
    steps = np.diff(record, prepend=-1)
    if steps[0] != 1 or not np.isin(steps, (0, 1)).all():
        raise PartyError("verification-failed", f"column {RECORD} does not count from 1")
    place, time = place_column(task.job), time_column(task.job)
    locations = _places_in(release.columns[place], (*places, ""), place)
    items, empty = locations, locations == len(places)
    if time is not None:
        cells = _places_in(release.columns[time], (*times, ""), time)
        if ((cells == len(times)) != empty).any():
            raise PartyError("verification-failed", f"{place} and {time} are not empty together")
        items = cells * len(places) + locations
    whose, own = record[~empty], items[~empty].astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(whose, minlength=int(record[-1]) + 1))])
    if ((np.diff(whose) == 0) & (np.diff(own) <= 0)).any():
        raise PartyError("verification-failed", "the lines of a record are not in the order of items")
    return own, starts, np.flatnonzero(steps == 1)


def _same(one: LabelledColumn, other: LabelledColumn) -> bool:
    """Return True if two columns have the same values, row by row."""
    if len(one.codes) != len(other.codes):
        return False
    place = {label: i for i, label in enumerate(one.labels)}
    codes = np.array([place.get(label, -1) for label in other.labels] or [0], dtype=np.int64)[other.codes]
    return bool((codes == one.codes).all())
