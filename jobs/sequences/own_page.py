"""Page of a release of sequences for the owner of raw records: the risk of whole paths, before and after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.table import Ints, tally
from anonymize.trajectory.paths import Paths, collapsed
from jobs.data.rows_read import RowsRead
from jobs.page.own import risk_section, rows_section
from jobs.page.parts import Section, facts, number
from jobs.sequences.reading import settings
from jobs.task import Task


def own_sections(task: Task, rows: RowsRead, raw: Paths, left: Paths | None) -> Iterator[Section]:
    """Yield the sections. left: the paths of the release, if all records are the owner's."""
    yield rows_section(rows.words())
    if not raw.n_records:
        return
    after = None if left is None else sizes_of_paths(left)
    yield risk_section(sizes_of_paths(raw), after, settings(task.job).K, _WHOLE, known=["the whole sequence"])
    lines = [
        ("Records", *(number(paths.n_records) for paths in (raw, left) if paths is not None)),
        ("Items of all records", *(number(paths.n_instances) for paths in (raw, left) if paths is not None)),
        ("Records without an item", *(number(paths.n_empty) for paths in (raw, left) if paths is not None)),
    ]
    head = ("measure", "before") if left is None else ("measure", "before", "after")
    yield Section("Records before and after", [facts(lines, head=head)])


_WHOLE = (
    "The quasi-identifier of a record is its whole sequence here. The requirement bounds readers with L items of a "
    "sequence; see report.html."
)


def sizes_of_paths(paths: Paths) -> Ints:
    """Return the number of records of each different sequence, whatever the sensitive values."""
    alike = np.zeros(paths.n_paths, dtype=np.int64)
    different, number = collapsed(paths.items, paths.starts, alike, paths.domain)
    return tally(number, paths.weights, different.n_paths)
