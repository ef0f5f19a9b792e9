"""Items of a job: its locations and times, or the values of its sets."""

from __future__ import annotations

from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.taxonomy import lines_of
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths
from jobs.data.table_file import as_read
from jobs.data.texts import fault_of
from jobs.file.job import Job
from jobs.sequences.times import GridTimes, LocalTimes, Times
from jobs.task import Task


def is_wide(job: Job) -> bool:
    """Return True if a row of the table is a record, with a set of values."""
    return bool(job.names("items"))


def place_column(job: Job) -> str:
    """Return the column of locations, or of sets."""
    (name,) = job.names("location", "items")
    return name


def time_column(job: Job) -> str | None:
    """Return the column of times, if items have times."""
    (name,) = job.names("time") or (None,)
    return name


def places_of(task: Task) -> tuple[str, ...] | None:
    """Return the locations, or the values of sets, in order; None if left to the data. Raises SchemaError."""
    name = place_column(task.job)
    column = task.job.columns[name]
    if column.domain_file is None:
        places = column.domain
    else:
        lines = (line.strip() for line in lines_of(task.bundle.files[name]))
        places = tuple(line for line in lines if line)
        if not places:
            raise SchemaError("job-invalid", f"columns.{name}.domain_file lists no value", column=name)
    if places is not None:
        _check_places(name, places, column.separator)
    return places


def _check_places(name: str, places: tuple[str, ...], separator: str | None) -> None:
    """Require every value once, in a single Unicode form, without blanks around, and neither missing nor several."""
    seen: set[str] = set()
    for place in places:
        if as_read(place) in seen:
            raise SchemaError(
                "job-invalid",
                f"column {name} lists {place!r} twice; two Unicode forms (NFC and NFD) count as the same value",
                column=name,
            )
        if place != place.strip():
            raise SchemaError(
                "job-invalid",
                f"column {name} lists {place!r}: write the value without surrounding blanks",
                column=name,
            )
        fault = fault_of(place)
        if fault is not None:
            raise SchemaError(
                "job-invalid", f"column {name}: {place!r} cannot be published: {fault}", column=name
            )
        if place in ("", "?") or (separator is not None and separator in place):
            raise SchemaError(
                "job-invalid",
                f"column {name}: {place!r} cannot be a value: the text means a missing cell, or several values",
                column=name,
            )
        seen.add(as_read(place))


def times_of(task: Task) -> Times | None:
    """Return the cells of the time column; None if items have no time. Raises SchemaError."""
    name = time_column(task.job)
    if name is None:
        return None
    column = task.job.columns[name]
    if column.clock is not None:
        return LocalTimes(column.clock)
    grid = task.taxonomies[name]
    assert isinstance(grid, Grid), "a time column has numbers or a clock"
    return GridTimes(grid, bool(column.relative), name)


def vocabulary_in(task: Task, table: Paths) -> Vocabulary:
    """Return the items of a table, from the table's own number of items."""
    times = times_of(task)
    return vocabulary_of(table.domain // (1 if times is None else len(times.labels)), times)


def vocabulary_of(n_places: int, times: Times | None) -> Vocabulary:
    """Return the possible items. Raises SchemaError for too many."""
    if times is None:
        return Vocabulary(n_places)
    return Vocabulary(n_places, len(times.labels), timed=True)
