"""Pass 1 of a job of sequences: readings, or sets, as paths.

A long table has a reading in each row: person, place and time. All rows with the same id are a record. A row
without location or time is left out, and so is a record without a remaining row. A wide table has a record in each
row, with its set of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import DataError
from anonymize.release import LabelledColumn
from anonymize.table import Ints, Schema, coded_table
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Items, Paths, collapsed, rows_of
from jobs.data.coding import Coded, Coding
from jobs.data.counted import counted
from jobs.data.rows_read import WITHOUT_VALUE, RowsRead
from jobs.data.sources import Source
from jobs.file.job import Job
from jobs.reading import check_columns, check_rows
from jobs.sequences.coders import SHIFT, coder
from jobs.sequences.domains import is_wide, place_column, places_of, time_column, times_of, vocabulary_of
from jobs.sequences.settings import SequencesModel
from jobs.sequences.times import Times
from jobs.task import Task


@dataclass(frozen=True)
class ReadingsRead(RowsRead):
    """Fate of the rows of a table of sequences, and of their records.

    records:  number of records.
    without:  number of further records without a remaining row.
    """

    records: int = field(default=0, repr=False)
    without: int = field(default=0, repr=False)

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"records": self.records, "records_dropped": self.without}

    def words(self) -> list[str]:
        lines = [*super().words(), counted(self.records, "record", "records")]
        if self.without:
            lines.append(f"left out: {counted(self.without, 'record has', 'records have')} no row left")
        return lines


@dataclass(frozen=True)
class Tracks:
    """Records of a single holder; everything is for the owner alone.

    paths:     in the form of the engine.
    path_of:   number of each record's path: int64, shape (n_records,).
    schema:    the sensitive columns.
    vocabulary: of the items.
    places:    the locations, or the values of sets.
    times:     the lower edges of the time cells; empty without time.
    plain:     the plain columns by name, a value for each record.
    """

    paths: Paths = field(repr=False)
    path_of: Ints = field(repr=False)
    schema: Schema = field(repr=False)
    vocabulary: Vocabulary
    places: tuple[str, ...] = field(repr=False)
    times: tuple[str, ...] = field(repr=False)
    plain: Mapping[str, LabelledColumn] = field(repr=False)
    rows: ReadingsRead = field(repr=False)

    @property
    def ids(self) -> None:
        return None

    def canonical(self) -> bytes:
        paths = self.paths
        axes = self.schema.axes(paths.cells.astype(np.int64))
        columns = np.stack(
            [np.asarray(column, dtype="<i8") for column in (paths.lengths, paths.weights, *axes)]
        )
        return columns.tobytes() + paths.items.astype("<i4").tobytes()

    def told(self, n_matched: int | None) -> tuple[dict[str, Any], list[str]]:
        return self.rows.fields(), self.rows.words()


def settings(job: Job) -> SequencesModel:
    """Return the settings under `model.sequences` of the job file."""
    assert job.model.sequences is not None
    return job.model.sequences


def load_tracks(source: Source, task: Task) -> Tracks:
    """Read the source once, as paths.

    Raises DataError for a missing column, a value or time outside its domain, a row without an id (wide: two rows
    with the same id), a record with two values in a sensitive or plain column, a record with more items than the
    job allows, or no usable row.
    """
    job = task.job
    wide = is_wide(job)
    names = job.names("location", "time", "items", "sensitive", "plain")
    coding = Coding(
        {name: coder(task, name) for name in names},
        job.names("id"),
        checked=True,
        outside=False,
        persons=not wide,
    )
    check_columns(source, task)
    coded = source.collapse(coding)
    check_rows(coded, coding)
    return tracks_of(coded, task, lambda row: source.place(row + 1))


Place = Callable[[int], str]
"""Function from a row's number to its place in the table, for the owner. Rows count from 0; pass 1 drops no row."""


def tracks_of(coded: Coded, task: Task, place: Place) -> Tracks:
    """Return the records of pass 1. Raises DataError."""
    rows, person, lines = _usable(coded, task.job)
    if rows.records == 0:
        raise DataError("data-empty", "the table has no usable row", private="; ".join(rows.words()))
    found = {name: column.domain for name, column in coded.columns.items()}
    schema = task.schema_with(found)
    times = times_of(task)
    listed = places_of(task)
    places = found[place_column(task.job)] if listed is None else listed
    vocabulary = vocabulary_of(len(places), times)
    of_record = {
        name: _of_record(name, _codes(coded, name)[lines], person, rows.records, lines, place)
        for name in task.job.names("sensitive", "plain")
    }
    if is_wide(task.job):
        items, starts = _of_sets(coded, task.job, lines)
    else:
        items, starts = _of_readings(coded, task, times, vocabulary, person, lines, rows.records, place)
    _check_lengths(np.diff(starts), task, person, lines, place)
    table = coded_table(
        schema,
        [],
        np.zeros(rows.records, dtype=np.int64),
        [of_record[column.name] for column in schema.sensitive],
        occurring=bool(schema.sensitive) and not task.job.roster,
    )
    paths, path_of = collapsed(items, starts, table.cells, vocabulary.n_items)
    plain = {n: LabelledColumn(found[n], of_record[n]) for n in task.job.names("plain")}
    labels = () if times is None else times.labels
    return Tracks(paths, path_of, table.schema, vocabulary, tuple(places), labels, plain, rows)


def _usable(coded: Coded, job: Job) -> tuple[ReadingsRead, Ints, Ints]:
    """Return the fate of the rows; and for every kept row its record, numbered from 0, and its row number."""
    dropped: dict[str, dict[str, int]] = {}
    left = np.ones(len(coded.weights), dtype=bool)
    for name in job.names("location", "time", "items", "sensitive"):
        there = coded.columns[name].codes >= 0
        if not there.all():
            dropped[name] = {WITHOUT_VALUE: int((~there).sum())}
        left &= there
    lines = np.flatnonzero(left)
    if coded.person is None:
        person, n_all = np.arange(len(lines)), len(left)
        n_records = len(lines)
    else:
        n_all = int(coded.person.max(initial=-1)) + 1
        has = np.zeros(n_all, dtype=bool)
        has[coded.person[lines]] = True
        n_records = int(has.sum())
        person = (np.cumsum(has) - 1)[coded.person[lines]]
    read = ReadingsRead(
        len(left),
        len(lines),
        dropped,
        records=n_records,
        without=n_all - n_records,
        marks=coded.rows.marks,
        listed=coded.rows.listed,
    )
    return read, person, lines


def _codes(coded: Coded, name: str) -> Ints:
    """Return the codes of a column for computations."""
    return coded.columns[name].codes.astype(np.int64)


def _of_record(name: str, codes: Ints, person: Ints, n_records: int, lines: Ints, place: Place) -> Ints:
    """Return the common code of all rows of each record: int64, shape (n_records,). Raises DataError."""
    found = np.empty(n_records, dtype=np.int64)
    found[person] = codes
    varies = found[person] != codes
    if varies.any():
        n = len(np.unique(person[varies]))
        raise DataError(
            "data-record-varies",
            f"column {name} has several values in the rows of a record",
            column=name,
            private=f"{counted(n, 'id has', 'ids have')} several values, e.g. the id on "
            f"{_first(varies, lines, place)}; every row of an id needs the same value",
        )
    return found


def _of_sets(coded: Coded, job: Job, lines: Ints) -> tuple[Items, Ints]:
    """Return the sets of the kept rows, one after the other, each in the order of items; and the sets' starts."""
    column = coded.columns[place_column(job)]
    assert column.sets is not None
    items, starts = rows_of(
        column.sets.leaves.astype(np.int32), column.sets.starts, column.codes[lines].astype(np.int64)
    )
    whose = np.repeat(np.arange(len(lines)), np.diff(starts))
    return items[np.lexsort((items, whose))], starts


def _of_readings(
    coded: Coded,
    task: Task,
    times: Times | None,
    vocabulary: Vocabulary,
    person: Ints,
    lines: Ints,
    n_records: int,
    place: Place,
) -> tuple[Items, Ints]:
    """Return the items, record after record, and their starts. Raises DataError for a time outside the domain."""
    asked = settings(task.job)
    places = _codes(coded, place_column(task.job))[lines]
    name = time_column(task.job)
    if times is None or name is None:
        whose, items = _distinct(person, places, vocabulary)
    else:
        ticks = _codes(coded, name)[lines] - SHIFT
        cells = _cells(times, ticks, person, n_records, name, lines, place)
        if asked.places == "first":
            chosen = _earliest(person * vocabulary.n_cells + cells, ticks, places)
            person, cells, places = person[chosen], cells[chosen], places[chosen]
        whose, items = _distinct(person, cells * vocabulary.n_locations + places, vocabulary)
    if asked.stays == "arrivals":
        kept = ~_stays(whose, items, vocabulary)
        whose, items = whose[kept], items[kept]
    starts = np.concatenate([[0], np.cumsum(np.bincount(whose, minlength=n_records))])
    return items.astype(np.int32), starts


def _distinct(person: Ints, items: Ints, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return every item of every record once, in order: the record, and the item."""
    keys = person * vocabulary.n_items + items
    keys.sort()  # np.unique hashes, and takes ten times as long here
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    whose, own = np.divmod(keys[first], vocabulary.n_items)
    return whose, own


def _cells(
    times: Times, ticks: Ints, person: Ints, n_records: int, name: str, lines: Ints, place: Place
) -> Ints:
    """Return the time cell of every reading."""
    if times.relative:
        first = np.full(n_records, np.iinfo(np.int64).max)
        np.minimum.at(first, person, ticks)
        ticks = ticks - first[person]
    cells = times.cells(ticks)
    outside = cells < 0
    if outside.any():
        n = len(np.unique(person[outside]))
        raise DataError(
            "data-outside-domain",
            f"column {name} has a time outside its domain, counted from the first reading of the record",
            column=name,
            remedy=times.remedy,
            private=f"{counted(int(outside.sum()), 'reading', 'readings')} of {counted(n, 'record', 'records')}; "
            f"the first is on {_first(outside, lines, place)}",
        )
    return cells


def _earliest(groups: Ints, ticks: Ints, places: Ints) -> Ints:
    """Return the number of the first reading of every group; at the same time, of the first place."""
    order = np.lexsort((places, ticks, groups))
    ordered = groups[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return order[first]


def _stays(whose: Ints, items: Ints, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return True for items with the place of an item of the same record in the time cell before.

    whose, items:  from :func:`_distinct`.
    """
    cells, places = np.divmod(items, vocabulary.n_locations)
    new = np.ones(len(items), dtype=bool)
    new[1:] = (whose[1:] != whose[:-1]) | (cells[1:] != cells[:-1])
    group = np.cumsum(new) - 1
    owner = whose[new]
    follows = np.zeros(len(owner), dtype=bool)
    follows[1:] = owner[1:] == owner[:-1]
    codes = group * vocabulary.n_locations + places
    before = codes - vocabulary.n_locations
    found = np.minimum(np.searchsorted(codes, before), len(codes) - 1)
    stays: NDArray[np.bool_] = follows[group] & (codes[found] == before)
    return stays


def _check_lengths(lengths: Ints, task: Task, person: Ints, lines: Ints, place: Place) -> None:
    """Raise DataError for a record with more items than the job allows."""
    most = settings(task.job).max_items
    too_long = lengths > most
    if too_long.any():
        n, longest = int(too_long.sum()), int(lengths.max())
        raise DataError(
            "path-too-long",
            f"a record has more than {most} items (`max_items`)",
            column=place_column(task.job),
            private=f"{counted(n, 'record has', 'records have')} more; the longest has {longest:,}; the first begins "
            f"on {_first(too_long[person], lines, place)}",
        )


def _first(which: NDArray[np.bool_], lines: Ints, place: Place) -> str:
    """Return the place of the first of some kept rows."""
    return place(int(lines[np.argmax(which)]))
