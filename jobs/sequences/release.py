"""Released table of sequences: long, with a line for every kept item, or wide, with a line for every record.

Records stand in a canonical order for any holders: by their kept paths, then by sensitive and plain values. In a
long table `record` numbers the records from 1, and an empty path has a single line without location and time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonymize.release import LabelledColumn, Release, narrowed
from anonymize.table import Ints, Schema
from anonymize.trajectory.items import Vocabulary
from anonymize.trajectory.paths import Paths, rows_of
from jobs.data.arrow import pa, pc
from jobs.file.job import Job
from jobs.sequences.domains import is_wide, place_column, time_column

RECORD = "record"
"""Column with the record numbers of a long table."""


def published(job: Job) -> tuple[str, ...]:
    """Return the columns of the release, in order."""
    time = time_column(job)
    path = (
        (place_column(job),)
        if is_wide(job)
        else (RECORD, place_column(job), *([] if time is None else [time]))
    )
    return (*path, *job.names("sensitive", "plain"))


def release_of_paths(
    job: Job,
    paths: Paths,
    path_of: Ints,
    schema: Schema,
    vocabulary: Vocabulary,
    places: Sequence[str],
    times: Sequence[str],
    plain: Mapping[str, LabelledColumn],
) -> Release:
    """Return the published records.

    paths:    kept paths; equal paths may recur.
    path_of:  number of each record's path.
    plain:    by name, a value for each record.
    """
    rank, texts = _ranks(paths, job, places)
    axes = schema.axes(paths.cells.astype(np.int64))[1:]
    by_text = [_by_text(column) for column in plain.values()]
    keys = [*by_text[::-1], *(axis[path_of] for axis in axes[::-1]), rank[path_of]]
    order = np.lexsort(keys)
    own = path_of[order]
    columns: dict[str, LabelledColumn] = {}
    if texts is None:
        lines, columns = _long(job, paths, own, vocabulary, places, times)
    else:
        lines, columns = np.arange(len(own)), {place_column(job): narrowed(texts, rank[own])}
    for sensitive, axis in zip(schema.sensitive, axes, strict=True):
        columns[sensitive.name] = narrowed(sensitive.domain, axis[own[lines]])
    for name, column in plain.items():
        columns[name] = LabelledColumn(column.labels, column.codes[order[lines]])
    return Release(columns).ordered(published(job))


def _ranks(paths: Paths, job: Job, places: Sequence[str]) -> tuple[Ints, tuple[str, ...] | None]:
    """Return every path's rank among the different paths, in the order of items; for sets also the printed sets."""
    data = pa.py_buffer((paths.items + 1).astype(">u4").tobytes())
    offsets = pa.py_buffer((paths.starts * 4).astype("<i8").tobytes())
    keys = pa.Array.from_buffers(pa.large_binary(), paths.n_paths, [None, offsets, data]).dictionary_encode()
    order = pc.array_sort_indices(keys.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    rank: Ints = place[keys.indices.to_numpy()]
    if not is_wide(job):
        return rank, None
    separator = job.columns[place_column(job)].separator or ";"
    sets = (np.frombuffer(key.as_py(), dtype=">u4") - 1 for key in keys.dictionary.take(pa.array(order)))
    return rank, tuple(separator.join(places[item] for item in each.tolist()) for each in sets)


def _by_text(column: LabelledColumn) -> Ints:
    """Return codes in the order of their labels."""
    order = sorted(range(len(column.labels)), key=column.labels.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    found: Ints = place[column.codes]
    return found


def _long(
    job: Job, paths: Paths, own: Ints, vocabulary: Vocabulary, places: Sequence[str], times: Sequence[str]
) -> tuple[Ints, dict[str, LabelledColumn]]:
    """Return every line's record, from 0; and the columns of records and items. ``own``: the path of every record."""
    lengths = paths.lengths[own]
    lines = np.repeat(np.arange(len(own)), np.maximum(lengths, 1))
    there = np.repeat(lengths > 0, np.maximum(lengths, 1))
    items, _ = rows_of(paths.items, paths.starts, own)
    locations = np.full(len(lines), len(places), dtype=np.int64)
    locations[there] = vocabulary.locations_of(items)
    columns = {
        RECORD: narrowed(tuple(map(str, range(1, len(own) + 1))), lines),
        place_column(job): narrowed((*places, ""), locations),
    }
    name = time_column(job)
    if name is not None:
        cells = np.full(len(lines), len(times), dtype=np.int64)
        cells[there] = vocabulary.cells_of(items)
        columns[name] = narrowed((*times, ""), cells)
    return lines, columns
